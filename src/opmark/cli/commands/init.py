"""`opmark init`: make a workspace."""

from pathlib import Path

import click

from opmark.cli.options import FOLDER


@click.command(name="init", epilog="Example: opmark init my-workspace")
@click.argument("folder", metavar="DIR", type=FOLDER)
def init(folder: Path) -> None:
    """Make DIR a workspace with the suites and tracks of OpMark."""
    from opmark.core.shipped import create_workspace

    created = create_workspace(folder)
    click.echo(created.root)
    suites = ", ".join(sorted(path.stem for path in created.suites.glob("*.yaml"))) or "none"
    enter = "" if created.root.resolve() == Path.cwd() else f"cd {folder}, then "
    click.echo(f"Suites: {suites}. Next: {enter}opmark doctor, opmark quickstart.", err=True)


COMMAND = init
