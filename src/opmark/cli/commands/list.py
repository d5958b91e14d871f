"""List extensions by name."""

import click

from opmark.cli.text.terminal import json_option, show_json, show_table
from opmark.core.extension_list import PACKAGES


@click.command(name="list", epilog="Example: opmark list placers")
@click.argument("what", metavar="WHAT", type=click.Choice(tuple(PACKAGES)))
@json_option
def command(*, what: str, as_json: bool) -> None:
    """List the extensions of one sort, with a sentence each.

    WHAT is kinds, families, backends, estimators, placers, profiles, objectives, metrics, bounds, checks, formats,
    arrivals or schedules. The names listed are what options such as --placer and --estimator take.
    """
    from opmark.core.extension_list import extensions

    found = extensions(what)
    if as_json:
        show_json(found)
        return
    show_table((what, "what it is"), [(item.name, item.summary) for item in found], left=2)


COMMAND = command
