"""The keys that docs/reference/json.md promises are those that commands print."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.leaderboards.examples import heft_canonical

from opmark.cli.main import cli
from opmark.core.shipped import create_workspace
from opmark.leaderboards.problem.files import save_problem

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "json.md"


def promised(command: str) -> list[set[str]]:
    """The outermost keys of each `{…}` that the reference says of `command`."""
    (entry,) = re.findall(
        rf"^`opmark {re.escape(command)}[^`]* --json`.*\n: (.*)$", REFERENCE.read_text(), re.MULTILINE
    )
    found = []
    for text in re.findall(r"`(\{.*?\})`", entry):
        flat, before = text[1:-1], ""
        while flat != before:
            before, flat = flat, re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "", flat)
        found.append(set(re.findall(r'"(\w+)"', flat)))
    return found


def printed(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    create_workspace(tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("command", ["models list", "devices show", "bench noise"])
def test_what_is_promised_is_printed(command: str, workspace: Path) -> None:
    del workspace
    options = ["--seconds", "0.5"] if command == "bench noise" else []
    found = printed(*command.split(), *options)
    (keys,) = promised(command)
    assert set(found[0] if isinstance(found, list) else found) == keys


def test_lists_that_share_a_line(workspace: Path) -> None:
    del workspace
    suites, backends = promised("bench list")
    assert set(printed("bench", "list")[0]) == suites
    assert set(printed("bench", "backends")[0]) == backends
    tracks, _ = promised("leaderboards tracks")
    assert set(printed("leaderboards", "tracks")[0]) == tracks


def test_a_plan_names_its_trials(workspace: Path) -> None:
    suite = workspace / "few.yaml"
    suite.write_text("schema: 1\nname: few\ntargets: [null-t1]\nquality: quick\nkinds:\n  gemm: {count: 2}\n")
    assert set(printed("bench", "plan", str(suite))) == promised("bench plan")[0]
    assert set(printed("bench", "run", str(suite))) == promised("bench run")[0]


def test_placing_simulating_and_bounding(tmp_path: Path) -> None:
    problem, solution = str(tmp_path / "problem.json"), str(tmp_path / "solution.json")
    save_problem(heft_canonical(), Path(problem))
    placed = printed("leaderboards", "place", problem, "--placer", "heft", "--budget", "1", "-o", solution)
    assert set(placed) == promised("leaderboards place")[0]
    assert set(printed("leaderboards", "simulate", problem, solution)) == promised("leaderboards simulate")[0]
    assert set(printed("leaderboards", "bound", problem)) == promised("leaderboards bound")[0]
