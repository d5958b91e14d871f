"""Submissions scored on every half of a track, and ranked."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.examples import peft_canonical
from tests.leaderboards.submissions.folders import PROBLEM, make
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.core.errors import ContentError, SubmissionError, UsageError
from opmark.leaderboards.making.recipe import SPLITS
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.scoring.hidden import VARIABLE, hidden_track, need_hidden, seed_hash
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.track import Track, load_track
from opmark.leaderboards.submissions.pack import digest
from opmark.leaderboards.submissions.sandbox.choice import Unprotected
from opmark.leaderboards.submissions.signature import SubmitterKey, own_key
from opmark.leaderboards.submissions.submit import ScoringOptions, submit


@pytest.fixture
def track(tmp_path: Path) -> Track:
    folder = tmp_path / "leaderboards" / "t"
    folder.mkdir(parents=True)
    (folder / "track.yaml").write_text(
        f"schema: 1\ntitle: T\nversion: 1.0.0\nbudget_s: 0.5\nhidden_seed_sha256: {seed_hash('s3cret')}\n"
    )
    for split, name, problem in (("problems", "a", PROBLEM), ("validation", "b", peft_canonical())):
        save_problem(replace(problem, name=name), folder / split / f"{name}.json")
    return load_track(folder.parent, "t")


@pytest.fixture
def key(tmp_path: Path) -> SubmitterKey:
    return own_key(tmp_path / "key.pem")


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
    track: Track, key: SubmitterKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "s", GREEDY, paper="https://example.org")
    score_track(track, ["heft"])
    receipt = submit(folder, [track], Unprotected(), key=key)
    assert receipt.placed[0].counted.unseen is None, "no recipe, and no seed of hidden instances"
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
    placed = submit(folder, [track], real_sandbox(), key=key, options=ScoringOptions(jobs=2)).placed[0]
    assert placed.counted.unseen is not None
    assert (placed.counted.source, placed.counted.unseen.instances) == ("hidden", 2)
    assert placed.splits.hidden == placed.counted.unseen.score
    assert track.runs()["mine"]["a"].layers[0].startswith("no sandbox"), "the finished runs were kept"
    hidden = need_hidden(track)
    assert hidden.runs()["mine"]["hidden-1"].layers[0].startswith("namespaces")
    assert (track.folder / "standings.json").read_bytes() != before, "the hidden instances count"
    monkeypatch.setenv(VARIABLE, "guess")
    with pytest.raises(ContentError, match="not the seed that this track committed to"):
        hidden_track(track)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match="are not known here"):
        need_hidden(track)


def test_only_tracks_it_is_made_for(track: Track, key: SubmitterKey, tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="made for other, not for t"):
        submit(make(tmp_path / "s", GREEDY, tracks=["other"]), [track], Unprotected(), key=key)
