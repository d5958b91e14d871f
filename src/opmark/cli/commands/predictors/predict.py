"""`opmark predict`: the predicted latency of a network."""

from pathlib import Path

import click

from opmark.cli.commands.predictors._options import prediction_options
from opmark.cli.completers import models
from opmark.cli.lookup import bundle_and_graph, note_other_machine
from opmark.cli.options import chosen_sizes, json_option
from opmark.cli.text.predictions import prediction_document, show_prediction, show_total
from opmark.cli.text.terminal import show_json


@click.command(name="predict", epilog="Example: opmark predict bert-base --target onnxruntime-cpu-t1 --batch 8")
@click.argument("model", shell_complete=models)
@prediction_options
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="The number of kernels to show; 0 for all."
)
@click.option("--brief", is_flag=True, help="Print the latency and its interval only.")
@json_option
@click.pass_context
def predict(
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
    brief: bool,
    as_json: bool,
) -> None:
    """Predict how long MODEL takes on a target.

    MODEL is an .onnx file, a .pt2 file, or a name listed by `opmark models list`.
    """
    from opmark.predictors.model.cost_model import CostModel

    sizes = chosen_sizes(dimensions, batch, size)
    loaded, graph = bundle_and_graph(ctx, model, target=target, bundle=bundle, sizes=sizes)
    found = CostModel(loaded, missing=missing, exact=True).network(graph)
    if as_json:
        show_json(prediction_document(found, graph.mapping, str(loaded.target)))
    elif brief:
        show_total(model, str(loaded.target), found)
    else:
        show_prediction(model, str(loaded.target), found, top)
    note_other_machine(ctx, loaded.target)
