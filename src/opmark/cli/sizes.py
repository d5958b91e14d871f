"""Options that say how large a network is: open dimensions of a file, batch and size of a network of the zoo."""

from collections.abc import Callable
from typing import Any

import click

from opmark.core.errors import UsageError

SIZES = (
    click.option(
        "--dimension", "dimensions", multiple=True, help="A size the model leaves open: NAME=NUMBER; repeatable."
    ),
    click.option("--batch", type=click.IntRange(min=1), help="Batch of a network of the zoo."),
    click.option("--size", type=click.IntRange(min=1), help="Image side or sequence length of a network of the zoo."),
)


def size_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--dimension`, `--batch` and `--size`, handed to the command as keywords."""
    for option in reversed(SIZES):
        command = option(command)
    return command


def chosen_sizes(dimensions: tuple[str, ...], batch: int | None, size: int | None) -> dict[str, int]:
    """`batch=8` pairs as a mapping, with what the options of that name say. Raises `UsageError`."""
    sizes = {}
    for pair in dimensions:
        name, equals, value = pair.partition("=")
        if not (name and equals and value.isdecimal() and int(value) > 0):
            raise UsageError(f"{pair!r} is not a dimension", hint="write it like batch=8")
        sizes[name] = int(value)
    for name, given in (("batch", batch), ("size", size)):
        if given is not None and sizes.setdefault(name, given) != given:
            raise UsageError(f"--{name} {given} and --dimension {name}={sizes[name]} differ", hint="give one of them")
    return sizes
