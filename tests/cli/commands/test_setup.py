"""`opmark init`, `new` and `completion`: how a newcomer starts."""

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from opmark.cli.commands import completion, init, new
from opmark.cli.main import cli
from opmark.core.workspace import find_workspace


def opmark(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_commands_are_registered_under_their_names() -> None:
    assert [module.COMMAND.name for module in (completion, init, new)] == ["completion", "init", "new"]


def test_init_makes_a_workspace_that_other_commands_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = opmark("init", str(tmp_path / "work"))
    assert (code, out.strip()) == (0, str(tmp_path / "work"))
    monkeypatch.chdir(tmp_path / "work" / "bench")
    assert find_workspace(Path.cwd()).root == tmp_path / "work"
    assert opmark("datasets", "list", "--json")[:2] == (0, "[]\n")
    code, _, error = opmark("init", str(tmp_path / "work"))
    assert code == 2
    assert "already holds bench/, datasets/, predictors/, leaderboards/" in error


def test_new_writes_a_file_and_prints_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert opmark("new", "placer", "my-placer", "-o", str(path))[:2] == (0, f"{path}\n")
    assert "class MyPlacer(Placer)" in path.read_text()
    assert opmark("new", "placer", "My Placer", "-o", str(tmp_path / "b.py"))[0] == 2
    assert opmark("new", "planet", "x")[0] == 2


def test_new_track_goes_into_the_workspace(tmp_path: Path) -> None:
    opmark("init", str(tmp_path / "work"))
    code, out, _ = opmark("--workspace", str(tmp_path / "work"), "new", "track", "branchy")
    assert (code, out.strip()) == (0, str(tmp_path / "work" / "leaderboards" / "branchy" / "track.yaml"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(shell: str) -> None:
    code, out, _ = opmark("completion", shell)
    assert code == 0
    assert "_OPMARK_COMPLETE" in out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_completion_knows_the_commands() -> None:
    result = CliRunner().invoke(
        cli,
        [],
        prog_name="opmark",
        env={"_OPMARK_COMPLETE": "bash_complete", "COMP_WORDS": "opmark dat", "COMP_CWORD": "1"},
    )
    assert "plain,datasets" in result.stdout
