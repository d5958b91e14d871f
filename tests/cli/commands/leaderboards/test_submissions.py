"""`opmark new submission`, `leaderboards check`, `submit` and `score --jobs`, from a folder to the board."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.leaderboards.examples import heft_canonical
from tests.leaderboards.submissions.sandbox.cell import real_sandbox

from opmark.cli.commands.leaderboards._options import score_progress
from opmark.cli.main import cli
from opmark.core.errors import ExitCode
from opmark.leaderboards.problem.files import save_problem
from opmark.leaderboards.scoring.scoring_jobs import ScoringProgress


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def start(tmp_path: Path) -> tuple[object, ...]:
    for room in ("bench", "datasets", "predictors", "leaderboards/small/problems"):
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "leaderboards/small/track.yaml").write_text("schema: 1\ntitle: Small\nversion: 1.0.0\nbudget_s: 5\n")
    save_problem(heft_canonical(), tmp_path / "leaderboards/small/problems/canonical.json")
    return ("--workspace", tmp_path, "leaderboards")


def test_from_the_template_to_the_board(start: tuple[object, ...], tmp_path: Path) -> None:
    real_sandbox()
    folder = tmp_path / "my-idea"
    assert run("new", "submission", "my-idea", "-o", folder / "submission.yaml").exit_code == 0
    checked = run(*start, "check", folder, "--json")
    assert checked.exit_code == 0, checked.stderr
    report = json.loads(checked.stdout)
    assert (report["errors"], report["trials"][0]["problem"]) == ([], "canonical")
    assert run(*start, "score", "--track", "small", "--placer", "heft", "--jobs", "2").exit_code == 0
    receipt = json.loads(run(*start, "submit", folder, "--json").stdout)
    assert receipt["placed"][0]["entries"] == 2
    assert any("seccomp" in layer for layer in receipt["layers"])
    again = run(*start, "submit", folder, "--track", "small")
    assert "1 finished runs are kept" in again.stderr
    rows = json.loads(run(*start, "standings", "--track", "small", "--json").stdout)
    assert {row["name"] for row in rows} == {"heft", "my-idea"}


def test_the_template_answers_where_parts_must_be_contiguous(start: tuple[object, ...], tmp_path: Path) -> None:
    problem = replace(heft_canonical(), name="in-a-row", contiguous=True)
    save_problem(problem, tmp_path / "leaderboards/small/problems/in-a-row.json")
    folder = tmp_path / "my-idea"
    run("new", "submission", "my-idea", "-o", folder / "submission.yaml")
    checked = run(*start, "check", folder, "--sandbox", "none", "--i-trust-this", "--json")
    assert checked.exit_code == 0, checked.stderr
    assert {trial["problem"] for trial in json.loads(checked.stdout)["trials"]} == {"canonical", "in-a-row"}


def test_a_check_says_what_to_fix(start: tuple[object, ...], tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    run("new", "submission", "broken", "-o", folder / "submission.yaml")
    (folder / "placer.py").write_text("def place(problem, budget):\n    return {'T1': 'P1'}\n")
    found = run(*start, "check", folder, "--sandbox", "none", "--i-trust-this")
    assert found.exit_code == ExitCode.CHECK_FAILED
    assert "9 of 10 units have no device" in found.stderr
    (folder / "submission.yaml").write_text("schema: 1\nname: x\n")
    wrong = run(*start, "check", folder, "--sandbox", "none", "--i-trust-this")
    assert (wrong.exit_code, "title: missing" in wrong.stderr) == (ExitCode.CHECK_FAILED, True)
    assert run(*start, "submit", folder, "--sandbox", "none", "--i-trust-this").exit_code == ExitCode.CONTENT
    untrusted = run(*start, "check", folder, "--sandbox", "none")
    assert (untrusted.exit_code, "--i-trust-this" in untrusted.stderr) == (ExitCode.USAGE, True)


def test_hidden_instances_need_their_seed(start: tuple[object, ...]) -> None:
    found = run(*start, "score", "--track", "small", "--hidden")
    assert (found.exit_code, "are not known here" in found.stderr) == (ExitCode.USAGE, True)


def test_progress_says_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with score_progress() as show:
        show("small", ScoringProgress(done=0, total=2, kept=3))
        show("small", ScoringProgress(done=1, total=2, kept=3, left_s=4.0))
    assert capsys.readouterr().err.count("3 finished runs are kept") == 1
