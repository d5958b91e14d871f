"""Predict how long a network takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.completers import models, predicted_targets
from opmark.cli.options import workspace
from opmark.cli.sizes import SIZES, chosen_sizes
from opmark.cli.text.predictions import note_text, parameters_text, total_text
from opmark.cli.text.terminal import json_option, show_json, show_table
from opmark.core.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opmark.core.graph import Graph
    from opmark.predictors.model.bundle import Bundle
    from opmark.predictors.model.network import NetworkPrediction

DEFAULT_TARGET = "onnxruntime-cpu-t1"
_OPTIONS = (
    click.option(
        "--target",
        default=DEFAULT_TARGET,
        show_default=True,
        shell_complete=predicted_targets,
        help="What runs the network; [DEVICE/]TARGET.",
    ),
    click.option(
        "--bundle",
        type=click.Path(path_type=Path, file_okay=False),
        help="A predictor folder; default: the newest of the target in this workspace.",
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "bytes-moved"]),
        default="error",
        show_default=True,
        help="What a kernel costs whose kind has no predictor.",
    ),
    *SIZES,
)


def prediction_options(command: "Callable[..., None]") -> "Callable[..., None]":
    """What every command that predicts a model asks for: target, bundle, missing kinds and sizes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def bundle_and_graph(
    ctx: click.Context, model: str, *, target: str, bundle: Path | None, sizes: "Mapping[str, int]"
) -> "tuple[Bundle, Graph]":
    """The predictors to use and the kernels of `model`; a bundle given by its path needs no workspace.

    `target` may have its device before it, as it is printed: `DEVICE/onnxruntime-cpu-t1`.
    """
    from opmark.models.resolve import graph_of
    from opmark.predictors.model.bundle import load
    from opmark.predictors.model.bundle_paths import path_of

    name = target.rpartition("/")[2]
    loaded = load(bundle or path_of(workspace(ctx), target), target_name=name)
    cache = workspace(ctx).cache if bundle is None else None
    return loaded, graph_of(model, name, cache=cache, dimensions=sizes)


@click.command(name="predict", epilog="Example: opmark predict bert-base --target onnxruntime-cpu-t1 --batch 8")
@click.argument("model", shell_complete=models)
@prediction_options
@click.option("--top", type=click.IntRange(min=0), default=20, show_default=True, help="Kernels to show; 0 for all.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    model: str,
    target: str,
    bundle: Path | None,
    missing: str,
    dimensions: tuple[str, ...],
    batch: int | None,
    size: int | None,
    top: int,
    as_json: bool,
) -> None:
    """Predict how long MODEL takes on a target.

    MODEL is an .onnx or .pt2 file, or a name that `opmark models list` knows.
    """
    from opmark.predictors.model.cost_model import CostModel

    sizes = chosen_sizes(dimensions, batch, size)
    loaded, graph = bundle_and_graph(ctx, model, target=target, bundle=bundle, sizes=sizes)
    found = CostModel(loaded, missing=missing).network(graph)
    if as_json:
        show_json(described(found, graph.mapping, str(loaded.target)))
        return
    show_prediction(model, str(loaded.target), found, top)


def described(found: "NetworkPrediction", mapping: str, target: str) -> dict[str, Any]:
    """A prediction as documented JSON."""
    return {
        "target": target,
        "total_ns": found.total_ns,
        "low_ns": found.low_ns,
        "high_ns": found.high_ns,
        "coverage": found.coverage,
        "bytes_moved_share": found.bytes_moved_share,
        "rotated_share": found.rotated_share,
        "mapping": mapping,
        "note": found.note,
        "kernels": [
            {
                "kind": row.kernel.kind,
                "params": row.kernel.params,
                "count": row.count,
                "ns": row.ns,
                "low_ns": row.low_ns,
                "high_ns": row.high_ns,
                "extrapolated": row.extrapolated,
            }
            for row in found.rows
        ],
    }


def show_prediction(model: str, target: str, found: "NetworkPrediction", top: int) -> None:
    """The total with its interval, and the kernels by cost."""
    kernels = sum(row.count for row in found.rows)
    click.echo(total_text(model, target, found))
    beyond = sum(row.total_ns for row in found.rows if row.extrapolated)
    click.echo(
        f"{kernels} kernels, {len(found.rows)} distinct; {found.bytes_moved_share:.1%} of the time is predicted from "
        f"bytes moved alone, {beyond / max(found.total_ns, 1e-9):.1%} beyond what was measured"
    )
    shown = found.rows[:top] if top else found.rows
    rows = [
        (
            row.kernel.kind,
            parameters_text(row.kernel.params),
            str(row.count),
            format_ns(row.ns),
            f"{format_ns(row.low_ns)} – {format_ns(row.high_ns)}",
            f"{row.total_ns / max(found.total_ns, 1e-9):.1%}",
            "extrapolated" if row.extrapolated else "",
        )
        for row in shown
    ]
    show_table(("kind", "parameters", "count", "each", "interval", "share", ""), rows, left=2)
    if len(shown) < len(found.rows):
        rest = sum(row.total_ns for row in found.rows[len(shown) :])
        click.echo(f"and {len(found.rows) - len(shown)} more kernels with {rest / max(found.total_ns, 1e-9):.1%}")
    click.echo(note_text(found.note), err=True)


COMMAND = command
