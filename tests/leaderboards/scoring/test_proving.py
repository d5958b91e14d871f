"""Bounds of a track's problems: stored as they are proved, never lower than before."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.test_placers import training
from tests.leaderboards.examples import heft_canonical

from opmark.core.errors import CheckFailedError, NothingSelectedError
from opmark.leaderboards.bounds.certificate import read_certificates, write_certificates
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.scoring import proving
from opmark.leaderboards.scoring.proving import check_bounds, prove_bounds
from opmark.leaderboards.scoring.scoring_jobs import score_track
from opmark.leaderboards.scoring.track import Track, freeze_track, load_track

pytest.importorskip("ortools", reason="OR-tools is not installed (extra solvers)")


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track that `cp-sat` has answered and whose references are frozen."""
    place = tmp_path_factory.mktemp("scored")
    folder = place / "latency"
    (folder / "problems").mkdir(parents=True)
    (folder / "track.yaml").write_text("schema: 1\ntitle: Latency\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(heft_canonical(), folder / "problems" / "canonical.json")
    found = load_track(place, "latency")
    score_track(found, ["cp-sat"])
    freeze_track(found)
    return place


@pytest.fixture
def track(scored: Path, tmp_path: Path) -> Track:
    """A copy of it."""
    shutil.copytree(scored, tmp_path / "leaderboards")
    return load_track(tmp_path / "leaderboards", "latency")


def reference(track: Track):
    return track.problems()[0].reference


def test_a_proved_optimum_becomes_the_bound_and_is_not_proved_again(track: Track) -> None:
    before = reference(track)
    assert before.bound_ns < before.best_known_ns
    gained = prove_bounds(track, seconds=30)
    after = reference(track)
    # 75 is the optimum of the canonical example under the rules of opsim 1, and cp-sat finds it.
    assert after.bound_ns == after.bounds["intervals"] == after.best_known_ns == 75
    assert gained == {"canonical": after.bound_ns - before.bound_ns}
    assert after.bounds["critical_path"] == before.bounds["critical_path"]
    assert prove_bounds(track, seconds=30) == {}


def test_a_bound_above_a_valid_answer_is_refused(track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = reference(track).best_known_ns
    monkeypatch.setattr(proving, "bounds", lambda *_, **__: {"wrong": cost + 1})
    with pytest.raises(CheckFailedError, match="the bound wrong is"):
        prove_bounds(track, seconds=1)
    assert "wrong" not in reference(track).bounds


def test_only_the_named_problems_are_proved(track: Track) -> None:
    with pytest.raises(NothingSelectedError, match="no problem is called 'other'"):
        prove_bounds(track, seconds=1, only=["other"])
    assert prove_bounds(track, seconds=30, only=["canonical"]).keys() == {"canonical"}
    assert check_bounds(track, seconds=30, only=["canonical"]) == {"canonical": True}


def test_a_weaker_bound_changes_nothing(track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    path = track.path_of("canonical")
    before = path.read_bytes()
    known = reference(track)
    monkeypatch.setattr(proving, "bounds", lambda *_, **__: {name: value - 1 for name, value in known.bounds.items()})
    assert prove_bounds(track, seconds=1) == {"canonical": 0}
    assert path.read_bytes() == before
    assert reference(track) == known


def test_a_certificate_is_decided_again_and_a_wrong_one_refused(track: Track) -> None:
    prove_bounds(track, seconds=30)
    (certificate,) = read_certificates(track.folder).values()
    assert (certificate.bound_ns, certificate.answer_ns, certificate.grid_ns) == (75, 75, 1)
    assert certificate.problem == track.problems()[0].id
    assert not certificate.decided_again
    assert check_bounds(track, seconds=30) == {"canonical": True}
    kept = read_certificates(track.folder)["canonical"]
    assert kept == replace(certificate, decided_again=True)
    for wrong in (replace(certificate, bound_ns=76, answer_ns=80), replace(certificate, problem="another")):
        write_certificates(track.folder, {"canonical": wrong})
        with pytest.raises(CheckFailedError, match="does not hold"):
            check_bounds(track, seconds=30)


def test_an_answer_that_runs_units_again_starts_no_proof(tmp_path: Path) -> None:
    folder = tmp_path / "training"
    (folder / "problems").mkdir(parents=True)
    (folder / "track.yaml").write_text("schema: 1\ntitle: Training\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(training(2), folder / "problems" / "training.json")
    found = load_track(tmp_path, "training")
    score_track(found, ["best-single-device"])
    solution = found.solutions()["best-single-device"]["training"]
    assert isinstance(solution, Solution)
    found.store("best-single-device", "training", replace(solution, recompute=("forward0",)))
    assert found.standings().rows[0].results[0].cost is not None
    freeze_track(found)
    assert prove_bounds(found, seconds=1) == {}
