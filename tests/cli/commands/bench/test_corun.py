"""`opmark bench corun` and `opmark predictors corun`: from a journal to factors in a problem."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.core.workspace import ROOMS, Workspace
from opmark.predictors.corun.files import find_corun

OPTIONS = ("--target", "null-t1", "--models", "inception-tiny,encoder-tiny", "--kernels", "8", "--pairs", "4")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for room in ROOMS:
        (tmp_path / room).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_journal_becomes_a_model(workspace: Path) -> None:
    partial = run("bench", "corun", *OPTIONS, "--budget", "0s", "--json")
    assert partial.exit_code == 0, partial.output
    assert json.loads(partial.stdout)["complete"] is False
    assert "Run the same command again" in partial.stderr
    result = run("bench", "corun", *OPTIONS, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["complete"] is True
    assert {one["neighbour"] for one in found["neighbours"]} >= {"kernels", "memory-100"}
    assert "median factor" in run("bench", "corun", *OPTIONS).stdout
    learned = run("predictors", "corun", found["journal"], "--json")
    assert learned.exit_code == 0, learned.output
    (model,) = json.loads(learned.stdout)
    assert model["judgement"]["median_error"] < 0.1
    assert find_corun(Workspace(workspace), model["device"], "null-t1") is not None
    assert "held-out pairs" in run("predictors", "corun", found["journal"]).stdout


def test_a_journal_of_something_else_is_refused(workspace: Path) -> None:
    (workspace / "other.jsonl").write_text("{}\n")
    assert run("predictors", "corun", str(workspace / "other.jsonl")).exit_code == ExitCode.CONTENT


def test_too_few_trials_are_refused(workspace: Path) -> None:
    del workspace
    few = ("--target", "null-t1", "--models", "encoder-tiny", "--kernels", "2", "--pairs", "1", "--json")
    result = run("bench", "corun", *few)
    assert result.exit_code == 0, result.output
    refused = run("predictors", "corun", json.loads(result.stdout)["journal"])
    assert refused.exit_code == ExitCode.NOTHING_SELECTED
    assert "too few to learn from" in refused.stderr
