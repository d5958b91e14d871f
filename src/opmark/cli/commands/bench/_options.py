"""Options that the measuring commands share."""

from pathlib import Path

import click

from opmark.cli.options import DEFAULT_TARGET, DURATION, FILE, workspace
from opmark.core.slug import path_inside

budget_option = click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h.")
journal_option = click.option(
    "-o", "--journal", type=FILE, help="The journal to write or to continue. Default: in bench/journals/."
)
quality_option = click.option(
    "--quality", default="full", show_default=True, help="Measuring quality: full or quick.", metavar="NAME"
)
target_option = click.option(
    "--target",
    "targets",
    multiple=True,
    help=f"A target to measure; repeatable. Default: {DEFAULT_TARGET}.",
    metavar="TARGET",
)


def default_journal(ctx: click.Context, name: str) -> Path:
    """The journal called `name` in the workspace. Raises `ContentError` outside a workspace."""
    return path_inside(workspace(ctx).journals, f"{name}.jsonl")


def show_how_to_continue(complete: bool) -> None:
    """Say how an unfinished run continues."""
    if not complete:
        click.echo("Run the same command again to continue.", err=True)
