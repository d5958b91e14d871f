"""`opmark leaderboards standings`: what stands beside the score, entry by entry and problem by problem."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.leaderboards.examples import heft_canonical

from opmark.cli.main import cli
from opmark.leaderboards.problem.files import save_problem

ENTRY = {"rank", "name", "score", "low", "high", "gain", "planning_s", "robust_quality", "p95_quality"}
ENTRY |= {"proved", "by_provenance", "public", "validation", "twins", "hidden", "drop", "recalls"}


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--workspace", str(root), "leaderboards", *arguments])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A track of two problems, one of which has intervals, with two entries."""
    for room in ("bench", "datasets", "predictors", "leaderboards/small/problems"):
        (tmp_path / room).mkdir(parents=True)
    folder = tmp_path / "leaderboards" / "small"
    (folder / "track.yaml").write_text("schema: 1\ntitle: Small\nversion: 1.0.0\nbudget_s: 5\n")
    plain = replace(heft_canonical(), name="plain")
    units = tuple(replace(unit, interval=dict.fromkeys(unit.exec_ns, (0.8, 1.3))) for unit in plain.units)
    save_problem(plain, folder / "problems" / "plain.json")
    save_problem(replace(plain, name="unsure", units=units), folder / "problems" / "unsure.json")
    scored = run(tmp_path, "score", "--track", "small", "--placer", "heft", "--placer", "random", "--json")
    assert scored.exit_code == 0, scored.stderr
    return tmp_path


def test_an_entry_has_its_planning_time_and_its_bad_day(root: Path) -> None:
    entries = json.loads(run(root, "standings", "--track", "small", "--json").stdout)
    assert [set(entry) for entry in entries] == [ENTRY] * 2
    for entry in entries:
        assert entry["planning_s"] > 0
        assert entry["p95_quality"] < entry["robust_quality"] <= 1.05
        assert entry["p95_quality"] < entry["score"]
    shown = run(root, "standings", "--track", "small").stdout
    assert "on a bad day" in shown
    assert f"{entries[0]['p95_quality']:.3f}" in shown


def test_instances_say_what_each_entry_did(root: Path) -> None:
    entries = json.loads(run(root, "standings", "--track", "small", "--instances", "--json").stdout)
    for entry in entries:
        plain, unsure = entry["instances"]
        assert (plain["problem"], plain["p95_ns"]) == ("plain", None)
        assert unsure["cost_ns"] < unsure["p95_ns"]
        assert plain["quality"] == pytest.approx(plain["best_known_ns"] / plain["cost_ns"])
        assert plain["bound_ns"] <= plain["best_known_ns"]
        assert entry["planning_s"] == pytest.approx((plain["planning_s"] + unsure["planning_s"]) / 2)
    shown = run(root, "standings", "--track", "small", "--instances").stdout
    assert shown.count("unsure") == 2


def test_an_entry_whose_runs_nobody_recorded_has_no_planning_time(root: Path) -> None:
    (root / "leaderboards" / "small" / "runs.json.gz").unlink()
    entries = json.loads(run(root, "standings", "--track", "small", "--json").stdout)
    assert {entry["planning_s"] for entry in entries} == {None}
    assert "–" in run(root, "standings", "--track", "small").stdout
