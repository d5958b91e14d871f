"""The command line: lazy groups, versions, exit codes, one sentence per error."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opmark.cli.main import COMMANDS, LazyGroup, cli
from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError, UnavailableError


def group_that(raises: BaseException) -> click.Group:
    class OneCommand(LazyGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            @click.command()
            def fail() -> None:
                raise raises

            return fail

    @click.group(cls=OneCommand)
    def main() -> None:
        """Test group."""

    return main


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OpMarkError("check"), 1),
        (ContentError("bad", where="a.yaml: key", hint="fix it"), 3),
        (UnavailableError("no GPU"), 4),
        (NothingSelectedError("nothing"), 5),
        (KeyboardInterrupt(), 130),
        (click.UsageError("wrong"), 2),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    result = CliRunner().invoke(group_that(error), ["fail"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr


def test_an_error_is_a_sentence_and_a_hint() -> None:
    error = ContentError("bad", where="a.yaml: key", hint="fix it")
    result = CliRunner().invoke(group_that(error), ["fail"])
    assert result.stderr == "Error: a.yaml: key: bad\nHint: fix it\n"


def test_what_is_not_installed_is_a_sentence_too() -> None:
    result = CliRunner().invoke(group_that(ModuleNotFoundError("gone", name="transformers.models")), ["fail"])
    assert result.exit_code == 4
    assert result.stderr == (
        "Error: this needs transformers.models, which is not installed\nHint: pip install 'opmark[models]'\n"
    )
    broken = CliRunner().invoke(group_that(ModuleNotFoundError("gone", name="opmark.cli.nowhere")), ["fail"])
    assert isinstance(broken.exception, ModuleNotFoundError)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--workspace", "DIR", "predictors", "list", "--json"),
        ("predictors", "--workspace", "DIR", "list", "--json"),
        ("predictors", "list", "--json", "--workspace=DIR"),
        ("predictors", "list", "--workspace", "DIR", "--json"),
    ],
)
def test_the_workspace_is_named_anywhere(arguments: tuple[str, ...], tmp_path: Path) -> None:
    folder = str(tmp_path / "nowhere")
    result = CliRunner().invoke(
        cli, ["datasets" if one == "predictors" else one.replace("DIR", folder) for one in arguments]
    )
    assert result.exit_code == 3
    assert f"{folder}: no such folder" in result.stderr


def test_a_commands_own_workspace_and_other_words_stay() -> None:
    group = cli
    assert isinstance(group, LazyGroup)
    for words in (["quickstart", "--workspace", "x"], ["predict", "m"], ["predict", "--", "--workspace", "x"]):
        assert group._workspace_first(list(words)) == words
    assert CliRunner().invoke(cli, ["predictors", "list", "--workspace"]).exit_code == 2


def test_a_mistyped_command_is_guessed() -> None:
    assert "Did you mean 'predict'?" in CliRunner().invoke(cli, ["predct"]).stderr
    assert "Did you mean" not in CliRunner().invoke(cli, ["xyzzy"]).stderr


def test_help_lists_every_group() -> None:
    result = CliRunner().invoke(cli, ["-h"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS.names())


def test_version_names_the_runtimes() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert result.exit_code == 0
    assert [part.split()[0] for part in result.stdout.split(", ")] == ["opmark", "onnxruntime", "torch", "lightgbm"]


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli, ["no-such-command"])
    assert result.exit_code == 2
