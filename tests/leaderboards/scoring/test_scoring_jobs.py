"""Runs in processes of their own: hard budgets, any number of jobs, and going on after being ended."""

import json
import textwrap
from pathlib import Path

import pytest
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.core.canonical import plain
from opmark.core.errors import SubmissionError
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt, attempt, budget_by_size_s, hard_end_s
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.scoring.placer_worker import compile_simulator
from opmark.leaderboards.scoring.run_record import RunRecord, code_of_placer, read_runs, write_runs
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress, score_entries, score_track
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.search import anytime

# Placers for the process: what a bad one does is no part of the package.
STRANGE = """
import time, os
from opmark.leaderboards.search import anytime
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.search.placer import Placer

class Strange(Placer):
    summary = "strange"
    def place(self, problem, *, budget_s, seed):
        on = lambda name: Solution(device={unit.name: name for unit in problem.units})
        {body}

PLACER = Strange()
"""


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a placer called `strange` that only processes started from now on can see."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import opmark.leaderboards.placers as room\nroom.__path__.append({str(tmp_path / 'more')!r})\n"
    )
    (tmp_path / "more").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    def write(body: str) -> None:
        indented = textwrap.indent(textwrap.dedent(body).strip(), " " * 8).lstrip()
        (tmp_path / "more" / "strange.py").write_text(STRANGE.replace("{body}", indented))

    return write


def test_a_placer_that_never_comes_back_is_ended_and_its_last_offer_counts(strange) -> None:
    strange("anytime.offer(on('P1')); anytime.offer(on('P2')); anytime.offer(on('nowhere'))\nwhile True: pass")
    with PlacerProcess() as process:
        found = process.attempt(heft_canonical(), "strange", budget_s=0.1)
        assert set(found.solution.device.values()) == {"P2"}
        assert found.planning_s >= hard_end_s(0.1)
        assert found.answered_s is not None
        assert found.answered_s < found.planning_s
        assert process.attempt(heft_canonical(), "heft", budget_s=5).evaluation.cost == 93, "a new process"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("while True: pass", r"was ended 1\.\d+ s after it got the problem, for a budget of 0.1 s"),
        ("os._exit(9)", r"took its process down \(code 9\)"),
        ("raise ValueError('boom')", "placer 'strange' raised ValueError: boom"),
        ("return on('nowhere')", "placer 'strange' is invalid: unit 'T1' is placed on 'nowhere'"),
    ],
)
def test_what_goes_wrong_is_one_sentence(strange, body: str, sentence: str) -> None:
    strange(body)
    with PlacerProcess() as process, pytest.raises(SubmissionError, match=sentence):
        process.attempt(heft_canonical(), "strange", budget_s=0.1)


def test_a_process_answers_like_a_call() -> None:
    with PlacerProcess() as process:
        for problem in (heft_canonical(), peft_canonical(), peft_canonical()):
            inside = attempt(problem, "local-search", budget_s=20, seed=3)
            outside = process.attempt(problem, "local-search", budget_s=20, seed=3)
            assert outside.solution == inside.solution
            assert outside.evaluation.cost == inside.evaluation.cost


def test_offers_reach_who_listens_and_nobody_else() -> None:
    heard: list[Solution] = []
    anytime.offer(Solution(device={"a": "b"}))
    with anytime.listening(heard.append):
        anytime.offer(Solution(device={"c": "d"}))
    anytime.offer(Solution(device={"e": "f"}))
    assert heard == [Solution(device={"c": "d"})]


def test_budgets_follow_the_size() -> None:
    assert [budget_by_size_s(units) for units in (10, 200, 201, 2000, 2001)] == [2, 2, 10, 10, 60]
    assert hard_end_s(10) == 12
    compile_simulator(heft_canonical())


def track_in(folder: Path) -> Track:
    (folder / "t").mkdir(parents=True)
    (folder / "t" / "track.yaml").write_text("schema: 1\ntitle: T\nversion: 1.0.0\nbudget_s: 20\n")
    for name, problem in (("a", heft_canonical()), ("b", peft_canonical())):
        from dataclasses import replace

        save_problem(replace(problem, name=name), folder / "t" / "problems" / f"{name}.json")
    return load_track(folder, "t")


NAMES = ("cpop", "heft", "local-search", "random")


def stored(track: Track) -> dict[str, bytes]:
    paths = [*(track.folder / "solutions").glob("*.json.gz"), track.folder / "standings.json"]
    return {str(path.relative_to(track.folder)): path.read_bytes() for path in paths}


def test_any_number_of_jobs_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = track_in(tmp_path / "one"), track_in(tmp_path / "two")
    steps: list[ScoringProgress] = []
    score_track(one, NAMES, jobs=1)
    score_track(two, tuple(reversed(NAMES)), jobs=2, progress=steps.append)
    assert stored(one) == stored(two)
    assert len(stored(one)) == len(NAMES) + 1
    assert [step.done for step in steps] == list(range(9))
    assert steps[0].left_s is None
    assert steps[-1].left_s == 0


class Counting:
    """Counts its runs, and is ended after a number of them."""

    def __init__(self, most: int) -> None:
        self.most, self.ran = most, 0

    def attempt(self, problem: Problem, name: str, *, budget_s: float, seed: int = 0) -> Attempt:
        if self.ran == self.most:
            raise KeyboardInterrupt
        self.ran += 1
        if name == "bad":
            raise SubmissionError("it failed", where=problem.name)
        return attempt(problem, name, budget_s=budget_s, seed=seed)


def test_a_run_that_was_ended_goes_on_where_it_stopped(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    codes = dict.fromkeys(("bad", "heft", "random"), "1")
    first = Counting(4)
    with pytest.raises(KeyboardInterrupt):
        score_entries(track, codes, [first])
    assert sum(len(row) for row in track.runs().values()) == 4, "nothing that was scored is lost"
    second, third, changed, again = (Counting(100) for _ in range(4))
    score_entries(track, codes, [second])
    assert second.ran == 2
    score_entries(track, codes, [third])
    assert third.ran == 0
    score_entries(track, {**codes, "heft": "2"}, [changed])
    assert changed.ran == 2, "other code"
    score_entries(track, codes, [again], again=True)
    assert again.ran == 6
    assert track.runs()["bad"]["a"].reason == "it failed"
    standings = track.standings()
    bad = next(row for row in standings.rows if row.name == "bad").results[0]
    assert (bad.reason, standings.reason("bad", bad)) == ("no solution was submitted", "it failed")
    assert "it failed" not in json.dumps(plain(standings.file())), "what is stored follows from solutions alone"
    assert set(track.runs()["heft"]) == {"a", "b"}


def test_a_failed_run_removes_the_older_answer(tmp_path: Path) -> None:
    track = track_in(tmp_path)
    track.store("bad", "a", Solution(device={}))
    score_entries(track, {"bad": "1"}, [Counting(9)])
    assert not track.has_answer("bad", "a")


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    assert read_runs(path) == {}
    record = RunRecord(problem="p", code=code_of_placer("heft"), budget_s=2, seed=1, planning_s=0.5, layers=("x",))
    write_runs(path, {"heft": {"a": record}})
    assert read_runs(path) == {"heft": {"a": record}}
    path.write_text('{"heft": {"a": 0.5}}')
    assert read_runs(path) == {}
    assert code_of_placer("no-such") == "no-such"
    assert ScoringProgress(done=0, total=1, kept=0).left_s is None
