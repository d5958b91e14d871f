"""The `opmark` command: it finds its subcommands by file name, and prints every error as one sentence with a hint."""

import difflib
import errno
import gc
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from opmark.cli.options import FOLDER
from opmark.cli.text.guard import guard_streams, guarded_streams
from opmark.cli.text.silence import broken_silence
from opmark.cli.text.terminal import show_error, show_files_without_checksum
from opmark.core.checksums import forget_files
from opmark.core.errors import ExitCode, MissingExtraError, OpMarkError
from opmark.core.registry import Registry, install_hint

COMMANDS: Registry[click.Command] = Registry("opmark.cli.commands", "COMMAND", "command")

_WORKSPACE = "--workspace"
# Imports and files that are read make many objects and no garbage: Python's own thresholds take a tenth of the time.
_COLLECTING = (100_000, 20, 50)

EPILOG = (
    "Exit codes: 0 fine, 1 failed (a check, a measurement, a write), 2 usage, 3 invalid content, "
    "4 missing backend, hardware or sandbox, 5 nothing selected, 130 interrupted."
)


class LazyGroup(click.Group):
    """A group that imports a subcommand only when it is used, so that `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the modules of `opmark.cli.commands`."""
        del ctx
        return list(COMMANDS.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or return None, which click turns into a usage error."""
        del ctx
        return COMMANDS.load(cmd_name) if cmd_name in COMMANDS.names() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; add the nearest name to its error, since click compares with loaded groups only."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], COMMANDS.names(), n=1)
            if not close or args[0] in COMMANDS.names():
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx=error.ctx) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, with `--workspace FOLDER` accepted behind the subcommand too."""
        if ctx.parent is None:
            args = self._workspace_first(args)
        return super().parse_args(ctx, args)

    def _workspace_first(self, args: list[str]) -> list[str]:
        """Move `--workspace` to the front, unless the subcommand has such an option of its own."""
        end = args.index("--") if "--" in args else len(args)
        name = next((word for word in args[:end] if word in COMMANDS.names()), None)
        found = [place for place, word in enumerate(args[:end]) if word.partition("=")[0] == _WORKSPACE]
        if name is None or not found or any(_WORKSPACE in one.opts for one in COMMANDS.load(name).params):
            return args
        place = found[-1]
        width = 1 if "=" in args[place] else 2
        return [*args[place : place + width], *args[:place], *args[place + width :]]

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line with its output behind a guard."""
        gc.set_threshold(*_COLLECTING)
        with guarded_streams():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand. Only here does an error become a message and an exit code."""
        forget_files()
        try:
            with broken_silence(ctx):
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
        except OSError as error:
            # A name that is too long, a circle of links, a folder that may not be read: any path can be one.
            if error.errno == errno.EPIPE or error.filename is None:
                raise
            show_error(OpMarkError(f"cannot be used: {error.strerror}", where=str(error.filename)))
            ctx.exit(OpMarkError.exit_code)
        except (KeyboardInterrupt, click.Abort):
            click.echo("Interrupted. Finished work is stored; run the same command again to continue.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        finally:
            show_files_without_checksum()


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        names = ("opmark", "onnxruntime", "torch", "lightgbm")
        click.echo(", ".join(f"{name} {_version(name)}" for name in names))
        ctx.exit()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
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
    help="Show the versions of OpMark and of its runtimes.",
)
@click.option(
    _WORKSPACE,
    type=FOLDER,
    help="The folder that holds bench/, datasets/, predictors/ and leaderboards/. Default: the nearest one at or above "
    "the current folder. It may also follow the subcommand.",
)
@click.pass_context
def cli(ctx: click.Context, workspace: Path | None) -> None:
    """Know how long operators take on a piece of hardware, and decide what runs where."""
    ctx.obj = workspace
    if "NO_COLOR" in os.environ:
        ctx.color = False


def main() -> None:
    """Run the command line."""
    guard_streams()
    sys.exit(cli())


if __name__ == "__main__":
    main()
