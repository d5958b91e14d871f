"""`opmark configurations`: which batch, size, target and element type to run a network with."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli import completers
from opmark.cli.lookup import bundles_named
from opmark.cli.options import DURATION, FILE, cache_folder, json_option, listed, missing_option
from opmark.cli.text.terminal import progress_bar, show_json, show_note, show_table, show_warning
from opmark.core.errors import UsageError
from opmark.core.units import counted, format_count, format_ns

if TYPE_CHECKING:
    from opmark.studies.configurations.sweep import Sweep

# Without --batch, a network of the zoo is predicted for these.
USUAL_BATCHES = (1, 8)
_DIGITS = 12


@click.command(epilog="Example: opmark configurations resnet-50 --batch 1,2,4,8")
@click.argument("model", shell_complete=completers.models)
@click.option("--batch", "batches", help="Batch sizes, such as 1,2,4,8. Default for a network of the zoo: 1,8.")
@click.option("--size", "image_sizes", help="Image sides or sequence lengths of a network of the zoo, such as 160,224.")
@click.option("--dimension", "dimensions", multiple=True, help="Sizes of an open dimension: NAME=1,2,4; repeatable.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    shell_complete=completers.predicted_targets,
    help="[DEVICE/]TARGET, repeatable. Default: every target with a predictor.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice(("float32", "bf16", "int8-dynamic", "int8-static")),
    multiple=True,
    help="An element type, repeatable. Default: all that a target can run.",
)
@click.option("--at-most", type=DURATION, help="Also find the most samples per second within this latency, like 20ms.")
@missing_option
@click.option("--brief", is_flag=True, help="Print the best configurations only.")
@click.option("-o", "--output", type=FILE, help="Write a page with a picture to this file.")
@json_option
@click.pass_context
def configurations(
    ctx: click.Context,
    *,
    model: str,
    batches: str | None,
    image_sizes: str | None,
    dimensions: tuple[str, ...],
    targets: tuple[str, ...],
    types: tuple[str, ...],
    at_most: float | None,
    missing: str,
    brief: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find the configuration to run MODEL in.

    Every combination of batch, size, target and element type is predicted, and the best one named for each goal.
    Element types differ in accuracy, which OpMark does not judge.
    """
    from opmark.core.files import write_text
    from opmark.models.source import source_of
    from opmark.studies.configurations.page import configurations_page
    from opmark.studies.configurations.sweep import SweepRequest, sweep

    sizes = _sizes(batches, image_sizes, dimensions)
    if source_of(model).path is None:
        sizes = {"batch": USUAL_BATCHES, **sizes}
    asked = SweepRequest(
        model=model,
        types=types,
        sizes=sizes,
        missing=missing,
        cache=cache_folder(ctx),
        limit_ns=None if at_most is None else at_most * 1e9,
    )
    with progress_bar(transient=True) as bar:
        task = bar.add_task("configurations", total=None)

        def show(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        found = sweep(asked, bundles_named(ctx, targets), show)
    if output is not None:
        write_text(output, configurations_page(found))
    if as_json:
        show_json(found.document())
        return
    _show(found, brief)
    if output is not None:
        click.echo(f"Page: {output}")


def _sizes(batches: str | None, image_sizes: str | None, dimensions: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The values of each dimension. Raises `UsageError` for what is no list of whole numbers, or given twice."""
    pairs = [("batch", batches), ("size", image_sizes), *(_dimension(text) for text in dimensions)]
    found: dict[str, tuple[int, ...]] = {}
    for name, text in pairs:
        if text is None:
            continue
        if name in found:
            raise UsageError(f"dimension {name!r} is given twice", hint="give all its sizes at once, like 1,2,4")
        values = listed(text)
        if not values or not all(one.isdecimal() and len(one) <= _DIGITS and int(one) > 0 for one in values):
            raise UsageError(f"{text!r} is no list of sizes", hint="write it like 1,2,4,8")
        found[name] = tuple(dict.fromkeys(int(one) for one in values))
    return found


def _dimension(text: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not (name and equals):
        raise UsageError(f"{text!r} is not a dimension", hint="write it like batch=1,2,4")
    return name, values


def _show(found: "Sweep", brief: bool) -> None:
    if not brief:
        dimensions = list(dict.fromkeys(name for one in found.configurations for name in one.sizes))
        front = found.front
        rows = [
            (
                one.target,
                one.type,
                "front" if one in front else "",
                *(str(one.sizes.get(name, "")) for name in dimensions),
                format_ns(one.latency_ns),
                f"{format_ns(one.low_ns)} – {format_ns(one.high_ns)}",
                format_count(one.samples_per_second),
            )
            for one in found.configurations
        ]
        show_table(("target", "type", "", *dimensions, "latency", "90 % interval", "samples/s"), rows, left=3)
    told: dict[str, None] = {}
    for goal, one in found.best.items():
        if one is None:
            click.echo(f"{goal}: no configuration")
            continue
        rivals = found.rivals(goal)
        doubt = f"; within the intervals, {counted(len(rivals), 'other configuration')} may be better" if rivals else ""
        click.echo(
            f"{goal}: {one.name}, {format_ns(one.latency_ns)} ({format_ns(one.low_ns)} to {format_ns(one.high_ns)}), "
            f"{format_count(one.samples_per_second)} samples/s{doubt}"
        )
        told |= dict.fromkeys(one.warnings)
    for sentence in told:
        show_warning(sentence)
    together: dict[str, list[str]] = {}
    for left in found.left_out:
        together.setdefault(left.reason, []).append(f"{left.target} {left.type}")
    for reason, names in together.items():
        show_note(f"left out, {reason}: {', '.join(names)}")


COMMAND = configurations
