"""A workspace for someone who installed the wheel."""

from pathlib import Path

import click


@click.command(name="init", epilog="Example: opmark init my-workspace")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def init(folder: Path) -> None:
    """Make DIR a workspace, with the suites and tracks of OpMark."""
    from opmark.core.shipped import create_workspace

    created = create_workspace(folder)
    click.echo(created.root)
    suites = ", ".join(sorted(path.stem for path in created.suites.glob("*.yaml"))) or "none"
    click.echo(f"Suites: {suites}. Next: cd {folder}, then opmark doctor, opmark quickstart.", err=True)


COMMAND = init
