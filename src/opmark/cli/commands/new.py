"""`opmark new`: write the template of an extension."""

from pathlib import Path

import click

from opmark.cli.options import FILE, workspace


@click.command(name="new", epilog="Example: opmark new submission my-idea")
@click.argument("what", type=click.Choice(["kind", "placer", "estimator", "track", "submission"]))
@click.argument("name")
@click.option("-o", "--output", type=FILE, help="Write this file instead.")
@click.pass_context
def new(ctx: click.Context, what: str, name: str, output: Path | None) -> None:
    """Write the template of an extension or a submission.

    The extension is called NAME and passes its tests unchanged. Code is written into the checkout that OpMark runs
    from, a track into the workspace, a submission into a new folder called NAME.
    """
    from opmark.core.scaffold import write_extension

    leaderboards = workspace(ctx).leaderboards if what == "track" and output is None else None
    click.echo(write_extension(what, name, leaderboards=leaderboards, output=output))


COMMAND = new
