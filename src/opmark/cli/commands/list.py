"""`opmark list`: the extensions of one sort."""

import click

from opmark.cli.options import json_option
from opmark.cli.text.terminal import show_json, show_table
from opmark.core.registry import PACKAGES


@click.command(name="list", epilog="Example: opmark list placers")
@click.argument("what", metavar="WHAT", type=click.Choice(tuple(PACKAGES)))
@json_option
def command(*, what: str, as_json: bool) -> None:
    """List the extensions of one sort, each with a sentence.

    WHAT is kinds, families, backends, estimators, placers, profiles, objectives, metrics, bounds, checks, formats,
    arrivals or schedules. Options such as --placer and --estimator take these names.
    """
    from opmark.core.registry import extensions

    found = extensions(what)
    if as_json:
        show_json(found)
        return
    show_table((what, "description"), [(item.name, item.summary) for item in found], left=2)


COMMAND = command
