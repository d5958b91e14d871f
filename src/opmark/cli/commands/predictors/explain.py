"""`opmark predictors explain`: the reasons for a prediction and for its interval."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.predictors._options import prediction_options
from opmark.cli.completers import models
from opmark.cli.lookup import bundle_and_graph, note_other_machine
from opmark.cli.options import FILE, chosen_sizes, json_option
from opmark.cli.text.predictions import parameters_text, prediction_document, share_text, show_total, sides_text
from opmark.cli.text.terminal import show_json, show_table, show_text
from opmark.core.units import counted

if TYPE_CHECKING:
    from opmark.predictors.model.explain import Explanation


@click.command(name="explain", epilog="Example: opmark predictors explain bert-base --suite next.yaml")
@click.argument("model", shell_complete=models)
@prediction_options
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="The number of kernels to show.")
@click.option(
    "--next",
    "count",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The number of kernels to suggest.",
)
@click.option("--suite", type=FILE, help="Write a suite of the kernels to measure next, for `opmark bench run`.")
@json_option
@click.pass_context
def explain(
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
    count: int,
    suite: Path | None,
    as_json: bool,
) -> None:
    """Explain the prediction of MODEL.

    The explanation says which resource bounds its kernels, where the width of the interval comes from, and which
    kernels to measure next.
    """
    from opmark.predictors.model.explain import explain as explained
    from opmark.predictors.model.explain import write_suite

    sizes = chosen_sizes(dimensions, batch, size)
    loaded, graph = bundle_and_graph(ctx, model, target=target, bundle=bundle, sizes=sizes)
    found = explained(loaded, graph, missing=missing, suggestions=count)
    if suite is not None:
        write_suite(suite, found.next_kernels, target=loaded.target.name, model=model)
        worth = f". {_benefit(found)}" if as_json else ""
        click.echo(f"{suite}: {counted(len(found.next_kernels), 'kernel')} for opmark bench run{worth}", err=True)
    if as_json:
        show_json({**prediction_document(found.prediction, graph.mapping, str(loaded.target)), **_document(found)})
    else:
        _show(model, str(loaded.target), found, top)
    note_other_machine(ctx, loaded.target)


def _document(found: "Explanation") -> dict[str, Any]:
    return {
        "interval": found.interval,
        "settled_share": found.settled_share,
        "narrower": found.narrower,
        "by_kind": dict(found.by_kind),
        "by_bound": dict(found.by_bound),
        "extrapolated_share": found.extrapolated_share,
        "reasons": [
            {
                "kind": row.kernel.kind,
                "params": row.kernel.params,
                "count": row.count,
                "share": row.share,
                "bound": row.bound,
                "extrapolated": row.extrapolated,
                "doubt_share": row.doubt_share,
            }
            for row in found.rows
        ],
        "next": [{"kind": kernel.kind, "params": kernel.params} for kernel in found.next_kernels],
    }


def _benefit(found: "Explanation") -> str:
    """The benefit of measuring the suggested kernels, as a sentence."""
    count = len(found.next_kernels)
    if found.sum_dominates:
        return (
            f"{found.interval.composition:.0%} of the interval comes from adding kernels up: measuring the {count} "
            f"suggested kernels can remove {found.settled_share:.0%} of it; only measured networks reduce the rest."
        )
    return (
        f"Measuring the {count} suggested kernels can remove {found.settled_share:.0%} of the interval's variance and "
        f"make it {found.narrower:.0%} narrower."
    )


def _show(model: str, target: str, found: "Explanation", top: int) -> None:
    parts = found.interval
    show_total(model, target, found.prediction)
    host_ns, device_ns = found.prediction.host_ns, found.prediction.device_ns
    if host_ns is not None and device_ns is not None:
        show_text(f"{sides_text(host_ns, device_ns)}; the rest is about the device")
    show_text("time by kind: " + ", ".join(f"{kind} {share_text(share)}" for kind, share in found.by_kind if share))
    click.echo("bound by: " + ", ".join(f"{bound} {share_text(share)}" for bound, share in found.by_bound if share))
    sources = {
        "adding kernels up": parts.composition,
        "errors of single kernels": parts.kernels,
        "errors that shape groups share": parts.groups,
        "errors that whole kinds share": parts.kinds,
    }
    shown = [f"{name} {share_text(share)}" for name, share in sources.items() if share]
    show_text(f"the interval comes from: {', '.join(shown)}")
    show_text(_benefit(found))
    if found.extrapolated_share:
        click.echo(f"{share_text(found.extrapolated_share)} of the time is in kernels outside the measured range")
    rows = [
        (
            row.kernel.kind,
            parameters_text(row.kernel.params),
            str(row.count),
            share_text(row.share),
            row.bound,
            share_text(row.doubt_share),
            "extrapolated" if row.extrapolated else "",
        )
        for row in found.rows[:top]
    ]
    columns = ("kind", "parameters", "count", "time", "bound by", "share of the interval", "")
    show_table(columns, rows, left=2)
