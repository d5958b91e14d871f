"""Explain how long a network is predicted to take."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.predictors.predict import bundle_and_graph, described, prediction_options
from opmark.cli.completers import models
from opmark.cli.sizes import chosen_sizes
from opmark.cli.text.predictions import parameters_text, total_text
from opmark.cli.text.terminal import json_option, show_json, show_table, show_text

if TYPE_CHECKING:
    from opmark.predictors.model.explain import Explanation


@click.command(name="explain", epilog="Example: opmark predictors explain bert-base --suite next.yaml")
@click.argument("model", shell_complete=models)
@prediction_options
@click.option("--top", type=click.IntRange(min=1), default=15, show_default=True, help="Kernels to show.")
@click.option("--next", "count", type=click.IntRange(min=1), default=20, show_default=True, help="Kernels to suggest.")
@click.option(
    "--suite",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a suite of the kernels to measure next, for `opmark bench run`.",
)
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
    count: int,
    suite: Path | None,
    as_json: bool,
) -> None:
    """Explain the prediction of MODEL.

    What bounds its kernels, what its interval is made of, what to measure next.
    """
    from opmark.predictors.model.explain import explain
    from opmark.predictors.model.next_suite import write_suite

    sizes = chosen_sizes(dimensions, batch, size)
    loaded, graph = bundle_and_graph(ctx, model, target=target, bundle=bundle, sizes=sizes)
    found = explain(loaded, graph, missing=missing, suggestions=count)
    if suite is not None:
        write_suite(suite, found.next_kernels, target=loaded.target.name, model=model)
        worth = f". {_settles(found)}" if as_json else ""
        click.echo(f"{suite}: {len(found.next_kernels)} kernels for opmark bench run{worth}", err=True)
    if as_json:
        show_json({**described(found.prediction, graph.mapping, str(loaded.target)), **_reasons(found)})
        return
    _show(model, str(loaded.target), found, top)


def _reasons(found: "Explanation") -> dict[str, Any]:
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


def _settles(found: "Explanation") -> str:
    """What measuring the suggested kernels is good for."""
    count = len(found.next_kernels)
    if found.sum_dominates:
        return (
            f"Most of the interval, {found.interval.composition:.0%}, is the sum itself: the {count} kernels to "
            f"measure next can settle {found.settled_share:.0%} of it, and only measured networks the rest."
        )
    return (
        f"The {count} kernels to measure next can settle {found.settled_share:.0%} of the interval: it would be "
        f"{found.narrower:.0%} narrower."
    )


def _show(model: str, target: str, found: "Explanation", top: int) -> None:
    prediction, parts = found.prediction, found.interval
    click.echo(total_text(model, target, prediction))
    show_text("time by kind: " + ", ".join(f"{kind} {share:.1%}" for kind, share in found.by_kind))
    click.echo("bound by: " + ", ".join(f"{bound} {share:.1%}" for bound, share in found.by_bound))
    show_text(
        f"the interval is made of: what whole kinds share {parts.kinds:.0%}, shape groups {parts.groups:.0%}, "
        f"single kernels {parts.kernels:.0%}, the sum itself {parts.composition:.0%}"
    )
    show_text(_settles(found))
    click.echo(f"{found.extrapolated_share:.1%} of the time is in kernels beyond what was measured")
    rows = [
        (
            row.kernel.kind,
            parameters_text(row.kernel.params),
            str(row.count),
            f"{row.share:.1%}",
            row.bound,
            f"{row.doubt_share:.1%}",
            "extrapolated" if row.extrapolated else "",
        )
        for row in found.rows[:top]
    ]
    show_table(("kind", "parameters", "count", "time", "bound by", "of the doubt", ""), rows, left=2)


COMMAND = command
