"""`opmark devices`: the facts recorded with every measurement."""

import click

from opmark.cli.options import json_option
from opmark.cli.text.terminal import show_json, show_table


@click.group()
def devices() -> None:
    """This machine, as every measurement records it."""


@devices.command(epilog="Example: opmark devices show")
@json_option
def show(*, as_json: bool) -> None:
    """Show this machine's name and the facts about it.

    Measurements are merged only where the checked facts agree; the noted facts are for the reader.
    """
    from opmark.studies.machine.facts import this_machine

    machine = this_machine()
    if as_json:
        show_json(machine)
        return
    click.echo(machine.device)
    rows = [(name, _shown(value), "checked") for name, value in machine.environment.checked.items()]
    rows += [(name, _shown(value), "noted") for name, value in machine.environment.noted.items() if name != "flags"]
    rows += [("gpu", f"{gpu.name}, driver {gpu.driver}", "noted") for gpu in machine.gpus]
    show_table(("fact", "value", ""), rows, left=3)


def _shown(value: str | float | bool | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


COMMAND = devices
