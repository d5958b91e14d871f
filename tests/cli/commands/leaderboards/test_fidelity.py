"""`opmark leaderboards fidelity` and `fidelity-run`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.core.shipped import create_workspace
from opmark.leaderboards.fidelity.records import ExecutedPlacement, FidelityRecord, record_path, save_record
from opmark.leaderboards.problem.placement import Solution


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    create_workspace(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["leaderboards", *arguments])


def test_figures_of_stored_records(folder: Path) -> None:
    placements = tuple(
        ExecutedPlacement(
            placers=(name,),
            solution=Solution(device={}),
            predicted_ns=predicted,
            visits_ns=((predicted + 10, predicted + 10), (predicted + 10,)),
        )
        for name, predicted in (("heft", 90), ("cpop", 190))
    )
    record = FidelityRecord(
        device="box", track="inference-latency", problem="p", problem_id="0", model="m", placements=placements
    )
    save_record(record, record_path(folder / "leaderboards", "box", "p"))
    (found,) = json.loads(run("fidelity", "--device", "box", "--json").stdout)
    assert {"device", "track", "n", "median_error", "tau", "regret", "noise_floor"} <= found.keys()
    assert (found["n"], found["tau"], found["regret"], found["noise_floor"]) == (2, 1, 0, 0)
    assert "inference-latency" in run("fidelity").stdout
    assert json.loads(run("fidelity", "--device", "other", "--json").stdout) == []
    assert "fidelity-run" in run("fidelity", "--track", "other").stdout


def test_an_unknown_cluster_and_a_machine_without_predictors(folder: Path) -> None:
    del folder
    assert run("fidelity-run", "--clusters", "moon").exit_code == ExitCode.USAGE
    result = run("fidelity-run", "--models", "resnet-small", "--predictors", "no-such-machine")
    assert result.exit_code == ExitCode.CONTENT
    assert "resnet-small" in result.stderr
