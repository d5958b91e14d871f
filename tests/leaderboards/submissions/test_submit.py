"""Submissions from the template to the standings: in Python, in shell, honest and not."""

import hashlib
import io
import json
import os
import stat
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.core.errors import ContentError, SubmissionError, UsageError
from opmark.core.scaffold import write_extension
from opmark.leaderboards.making.disguise import disguise
from opmark.leaderboards.making.recipe import SPLITS
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.hidden import VARIABLE, hidden_problems, hidden_track, need_hidden, seed_hash
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.submissions import driver
from opmark.leaderboards.submissions.budget import Budget, as_solution
from opmark.leaderboards.submissions.check import check, smallest_first
from opmark.leaderboards.submissions.manifest import load_submission
from opmark.leaderboards.submissions.pack import digest, pack, unpacked
from opmark.leaderboards.submissions.protocol import question
from opmark.leaderboards.submissions.runner import SubmissionRunner
from opmark.leaderboards.submissions.sandbox.choice import Unprotected
from opmark.leaderboards.submissions.sandbox.limits import Limits
from opmark.leaderboards.submissions.submit import submit

PROBLEM = heft_canonical()
UNITS = [unit.name for unit in PROBLEM.units]


def on(device: str, **facts: object) -> str:
    return json.dumps({"device": dict.fromkeys(UNITS, device), **facts})


def make(folder: Path, code: str | None = None, **facts: object) -> Path:
    """A submission that runs `main.py` as a command, or a `placer.py` with `code`."""
    folder.mkdir(parents=True)
    manifest = {"schema": 1, "name": "mine", "title": "Mine", "authors": ["A"], "license": "MIT", **facts}
    (folder / "submission.yaml").write_text(json.dumps(manifest))
    if code is not None:
        (folder / ("main.py" if "command" in manifest else "placer.py")).write_text(code)
    return folder


def program(folder: Path, code: str, **facts: object) -> Path:
    return make(folder, f"import json, os, sys, time\n{code}\n", command=["python3", "-S", "main.py"], **facts)


def runner(folder: Path, limits: Limits | None = None) -> SubmissionRunner:
    return SubmissionRunner(submission=load_submission(folder), sandbox=Unprotected(), limits=limits or Limits())


def test_the_template_passes_its_check_and_is_ranked(tmp_path: Path) -> None:
    path = write_extension("submission", "first-try", output=tmp_path / "first-try" / "submission.yaml")
    assert sorted(item.name for item in path.parent.iterdir()) == ["README.md", "placer.py", "submission.yaml"]
    found = check(path.parent, [(PROBLEM, 20.0)], real_sandbox())
    assert (found.errors, found.name) == ((), "first-try")
    cost = found.trials[0].cost
    assert cost is not None
    assert 80 <= cost < best_single_device(PROBLEM)[1]
    with pytest.raises(UsageError, match="exists already"):
        write_extension("submission", "first-try", output=path)


def test_a_command_in_any_language(tmp_path: Path) -> None:
    folder = make(tmp_path / "s", command=["./run.sh"])
    (folder / "run.sh").write_text(f"#!/bin/sh\nread -r problem\necho '{on('P1')}'\necho '{on('P2')}'\n")
    (folder / "run.sh").chmod(0o755)
    with unpacked(pack(load_submission(folder))) as submission:
        entry = SubmissionRunner(submission=submission, sandbox=real_sandbox())
        found = entry.attempt(PROBLEM, budget_s=10)
    assert set(found.solution.device.values()) == {"P2"}
    assert (found.solution.placer, found.solution.problem) == ("mine", "canonical")


@pytest.mark.parametrize(
    ("code", "device"),
    [
        (f"print('''{on('P1')}'''); print('garbage'); print('[[[['); print('null')", "P1"),
        (f"print('''{on('P1')}'''); print('''{on('nowhere')}''')", "P1"),
        (f"print('''{on('P1')}'''); sys.stdout.write('''{on('P2')[:-9]}''')", "P1"),
        (f"sys.stdout.write('''{on('P1')}''')", "P1"),
        (f"print(json.dumps(json.loads('''{on('P3')}'''), indent=1))", "P3"),
        (f"print('''{on('P1')}''', flush=True); os._exit(7)", "P1"),
        (f"print('''{on('P1')}''', flush=True); time.sleep(1.6); print('''{on('P3')}'''); time.sleep(60)", "P1"),
        (f"print('''{on('P2', problem='canonical')}'''); print('''{on('P1', problem='another')}''')", "P2"),
        (f"print('''{on('P1')}'''); print('''{on('P2')[:-1]}, \"priority\": NaN}}''')", "P1"),
    ],
    ids=["garbage", "invalid", "half", "no newline", "indented", "crash", "late", "another problem", "NaN"],
)
def test_the_last_complete_valid_solution_counts(tmp_path: Path, code: str, device: str) -> None:
    found = runner(program(tmp_path / "s", code)).attempt(PROBLEM, budget_s=0.1)
    assert set(found.solution.device.values()) == {device}


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("", "'mine' printed no solution"),
        ("print('hello')", "gave a last answer that is not valid: not JSON: hello"),
        ("print('[' * 100000)", "is longer than any solution|not JSON"),
        ("sys.exit('no idea')", r"'mine' ended with code 1 and printed no solution \(no idea\)"),
        ("time.sleep(60)", r"was ended 1.11 s after it got the problem and printed no solution"),
        ("while True: print('x' * 65536)", "was ended for printing more than 1 MiB"),
        (f"print('''{on('P1', problem='another')}''')", "it is a solution of 'another', not of 'canonical'"),
        (f"print('''{on('P1', cost=1)}''')", "cost: unknown key"),
        ("print(json.dumps({'device': {'T1': 'P1'}}))", "9 of 10 units have no device"),
        ("print(json.dumps({'device': 3}))", "device: "),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    entry = runner(program(tmp_path / "s", code), Limits(output_bytes=2**20))
    with pytest.raises(SubmissionError, match=sentence):
        entry.attempt(PROBLEM, budget_s=0.1)


def test_the_question_gives_no_answer_away() -> None:
    from opmark.leaderboards.problem.fields import CostOrigin, ReferenceCosts

    known = replace(
        PROBLEM, reference=ReferenceCosts(bound_ns=1, best_known_ns=7777), provenance=CostOrigin(model="secret-net")
    )
    asked = json.loads(question(known))
    assert asked["reference"] is None
    assert "secret-net" not in json.dumps(asked)
    assert [unit["name"] for unit in asked["units"]] == UNITS


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"name": "heft"}, "'heft' is one of OpMark's own placers"),
        ({"name": "../up"}, "not like my-name"),
        ({"authors": []}, "authors: name at least one"),
        ({"title": " "}, "title: must not be empty"),
        ({"licence": "MIT"}, "licence: unknown key"),
        ({}, "there is no placer.py either"),
    ],
)
def test_a_manifest_says_what_is_missing(tmp_path: Path, facts: dict[str, object], sentence: str) -> None:
    folder = make(tmp_path / "s", **facts)
    with pytest.raises(ContentError, match=sentence):
        load_submission(folder)
    assert sentence in check(folder, [], Unprotected()).errors[0]


def test_links_are_not_handed_in(tmp_path: Path) -> None:
    folder = make(tmp_path / "s", "def place(problem, budget): return {}")
    (folder / "secret").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("..")
    with pytest.raises(SubmissionError, match="secret: only plain files"):
        load_submission(folder)


def test_packing_gives_the_same_bytes_and_opens_safely(tmp_path: Path) -> None:
    first = program(tmp_path / "a", "print(1)")
    second = program(tmp_path / "b", "print(1)")
    (second / "__pycache__").mkdir()
    (second / "__pycache__" / "x.pyc").write_bytes(b"x")
    (second / ".git").mkdir()
    os.utime(second / "main.py", (1, 1))
    (second / "main.py").chmod(0o600)
    one, two = pack(load_submission(first)), pack(load_submission(second))
    assert one == two
    assert digest(one) == hashlib.sha256(one).hexdigest()
    with unpacked(one) as submission:
        assert stat.S_IMODE((submission.folder / "main.py").stat().st_mode) == 0o644
        assert submission.manifest.name == "mine"
    hostile = io.BytesIO()
    with tarfile.open(fileobj=hostile, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../../evil"))
    with pytest.raises(SubmissionError, match="cannot be opened"), unpacked(hostile.getvalue()):
        pass


def test_a_check_notices_dice_and_memories(tmp_path: Path) -> None:
    dice = program(
        tmp_path / "dice",
        "import random\nd = random.choice(['P1','P2','P3'])\n"
        + (
            "problem = json.loads(sys.stdin.readline())\n"
            "costs = hash('x') % 3\n"
            "print(json.dumps({'device': {u['name']: ['P1','P2','P3'][costs] for u in problem['units']}}))"
        ),
    )
    hashes = {hash_seed: _third(hash_seed) for hash_seed in (0, 1)}
    found = check(dice, [(PROBLEM, 0.5)], Unprotected())
    assert bool(found.errors) == (hashes[0] != hashes[1])
    knows = program(tmp_path / "knows", f"print('''{on('P1')}''')")
    found = check(knows, [(PROBLEM, 0.5)], Unprotected())
    assert found.errors == ()
    assert "an entry must not recognise instances by their names" in found.warnings[0]


def _third(hash_seed: int) -> int:
    import subprocess
    import sys

    command = [sys.executable, "-S", "-c", "print(hash('x') % 3)"]
    environment = {"PYTHONHASHSEED": str(hash_seed)}
    return int(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)


def test_a_disguise_changes_names_and_order_but_no_cost() -> None:
    generator = np.random.default_rng(5)
    for problem in (heft_canonical(), peft_canonical()):
        same = disguise(problem, "other", generator, rescale=0)
        assert not {unit.name for unit in same.units} & {unit.name for unit in problem.units}
        assert best_single_device(same)[1] == best_single_device(problem)[1]
        rescaled = disguise(problem, "other", generator)
        ratio = best_single_device(rescaled)[1] / best_single_device(problem)[1]
        assert 0.9 <= ratio <= 1.1
    first, again = (hidden_problems((heft_canonical(), peft_canonical()), "seed") for _ in range(2))
    assert first == again
    assert first != hidden_problems((heft_canonical(), peft_canonical()), "another")


@pytest.fixture
def track(tmp_path: Path) -> Track:
    folder = tmp_path / "leaderboards" / "t"
    folder.mkdir(parents=True)
    (folder / "track.yaml").write_text(
        f"schema: 1\ntitle: T\nversion: 1.0.0\nbudget_s: 2\nhidden_seed_sha256: {seed_hash('s3cret')}\n"
    )
    for split, name, problem in (("problems", "a", PROBLEM), ("validation", "b", peft_canonical())):
        save_problem(replace(problem, name=name), folder / split / f"{name}.json")
    return load_track(folder.parent, "t")


GREEDY = """
import sys, json
def place(problem, budget):
    print("chatter that is no answer")
    fastest = {}
    for unit in problem.units:
        able = {d.name: unit.exec_ns[d.type] for d in problem.cluster.devices if d.type in unit.exec_ns}
        fastest[unit.name] = min(able, key=able.get)
    return fastest
"""


def test_a_submission_is_packed_scored_everywhere_and_ranked(
    track: Track, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "s", GREEDY, paper="https://example.org")
    score_track(track, ["heft"])
    receipt = submit(folder, [track], Unprotected())
    assert receipt.placed[0].hidden is None
    assert receipt.placed[0].entries == 2
    assert [result.problem for result in receipt.placed[0].row.results] == ["a", "b"]
    assert all(result.cost for result in receipt.placed[0].row.results)
    kept = track.folder / "submissions" / "mine"
    assert digest((kept / "submission.tar").read_bytes()) == receipt.sha256
    assert json.loads((kept / "receipt.json").read_text())["manifest"]["paper"] == "https://example.org"
    before = (track.folder / "standings.json").read_bytes()
    assert track.write_standings(track.standings()).read_bytes() == before
    assert [[problem.name for problem in track.problems(split)] for split in SPLITS] == [["a"], ["b"]]

    monkeypatch.setenv(VARIABLE, "s3cret")
    placed = submit(folder, [track], real_sandbox(), jobs=2).placed[0]
    assert placed.hidden is not None
    assert {result.problem for result in placed.hidden.results} == {"hidden-1", "hidden-2"}
    assert track.runs()["mine"]["a"].layers[0].startswith("no sandbox"), "the finished runs were kept"
    hidden = need_hidden(track)
    assert hidden.runs()["mine"]["hidden-1"].layers[0].startswith("namespaces")
    assert (track.folder / "standings.json").read_bytes() == before
    monkeypatch.setenv(VARIABLE, "guess")
    with pytest.raises(ContentError, match="not the seed that this track committed to"):
        hidden_track(track)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match="are not known here"):
        need_hidden(track)


def test_a_budget_counts_down_and_hands_over() -> None:
    sent: list[Solution] = []
    budget = Budget(seconds=100, seed=3, send=sent.append)
    budget.offer({"T1": "P1"})
    budget.offer(Solution(device={"T1": "P2"}))
    assert [dict(solution.device) for solution in sent] == [{"T1": "P1"}, {"T1": "P2"}]
    assert 0 < budget.left_s <= 100
    with pytest.raises(TypeError, match="not a list"):
        as_solution([])


def test_a_placer_without_place_is_not_ready(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"was not ready to start: placer.py defines no function place"):
        runner(make(tmp_path / "s", "x = 1")).attempt(PROBLEM, budget_s=0.1)
    assert driver.READY.endswith(b"\n")


def test_only_tracks_it_is_made_for(track: Track, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="made for other, not for t"):
        submit(make(tmp_path / "s", GREEDY, tracks=["other"]), [track], Unprotected())


def test_the_smallest_problems_come_first_and_without_answers() -> None:
    from opmark.leaderboards.problem.fields import ReferenceCosts

    large: Problem = replace(PROBLEM, name="z", reference=ReferenceCosts(bound_ns=1, best_known_ns=2))
    small = replace(large, name="a", units=large.units[:1], tensors=())
    assert [(item.name, item.reference) for item in smallest_first([large, small])] == [("a", None), ("z", None)]
