"""The `opmark` command: finds its subcommands by file name and turns every error into one sentence."""

import difflib
import importlib
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from opmark.cli.text.terminal import show_error
from opmark.core.errors import ExitCode, MissingExtraError, OpMarkError
from opmark.core.registry import Registry, install_hint

COMMANDS: Registry[click.Command] = Registry("opmark.cli.commands", "COMMAND", "command")

EPILOG = (
    "Exit codes: 0 fine, 1 failed (a check, a measurement, a write), 2 usage, 3 invalid content, "
    "4 missing backend, hardware or sandbox, 5 nothing selected, 130 interrupted."
)


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are used, so that `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every file of `opmark.cli.commands`."""
        del ctx
        return list(COMMANDS.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that file, or None, which click turns into a usage error."""
        del ctx
        return COMMANDS.load(cmd_name) if cmd_name in COMMANDS.names() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; the error for an unknown name has the nearest one, which click knows of loaded groups only."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], COMMANDS.names(), n=1)
            if not close or args[0] in COMMANDS.names():
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx=error.ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; the one place where an error becomes a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except OpMarkError as error:
            show_error(error)
            ctx.exit(error.exit_code)
        except ModuleNotFoundError as error:
            missing = error.name or ""
            if not missing or missing.startswith("opmark"):
                raise
            show_error(MissingExtraError(f"this needs {missing}, which is not installed", hint=install_hint(missing)))
            ctx.exit(MissingExtraError.exit_code)
        except (KeyboardInterrupt, click.Abort):
            click.echo("Interrupted. Whatever was stored is kept; run the same command again.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        names = ("opmark", "onnxruntime", "torch", "lightgbm")
        click.echo(", ".join(f"{name} {_version(name)}" for name in names))
        ctx.exit()


def _version(name: str) -> str:
    try:
        return version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "OPMARK",
        "max_content_width": 100,
    },
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show versions.",
)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder holding bench/, datasets/, predictors/, leaderboards/; default: found upward from here.",
)
@click.pass_context
def cli(ctx: click.Context, workspace: Path | None) -> None:
    """Know how long operators take on a piece of hardware, and decide what runs where."""
    ctx.obj = workspace
    if "NO_COLOR" in os.environ:
        ctx.color = False


def main() -> None:
    """Run the command line."""
    sys.exit(cli())


if __name__ == "__main__":
    main()
