"""`opmark bench corun`: the slowdown of kernels by what runs on the other core."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.bench._options import (
    budget_option,
    default_journal,
    journal_option,
    show_how_to_continue,
    target_option,
)
from opmark.cli.options import DEFAULT_TARGET, cache_folder, json_option, listed
from opmark.cli.text.terminal import run_progress, show_json, show_table
from opmark.core.units import counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.bench.corun.measuring import CorunReport
    from opmark.core.measurements.corun import CorunMeasurement


@click.command(epilog="Example: opmark bench corun --budget 4m")
@target_option
@click.option("--models", default="", help="The networks whose kernels are measured, separated by commas.")
@click.option(
    "--kernels", type=click.IntRange(2, 10_000), default=80, show_default=True, help="The kernels of each target."
)
@click.option(
    "--pairs",
    type=click.IntRange(0, 1000),
    default=6,
    show_default=True,
    help="The other kernels beside which each kernel is measured.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The draw of kernels and pairs.")
@budget_option
@journal_option
@json_option
@click.pass_context
def corun(
    ctx: click.Context,
    *,
    targets: tuple[str, ...],
    models: str,
    kernels: int,
    pairs: int,
    seed: int,
    budget: float | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Measure kernels beside work on the other core.

    The other core runs stressors of the cache, the memory and the processor at several levels, and other kernels. Each
    kernel is timed alone and beside them, in turns. `opmark predictors corun` learns from the journal.
    """
    from opmark.bench.corun.measuring import MODELS, measure_corun

    path = journal or default_journal(ctx, "corun")
    with run_progress("corun") as show:
        report = measure_corun(
            targets or (DEFAULT_TARGET,),
            journal=path,
            models=tuple(listed(models)) or MODELS,
            kernels=kernels,
            pairs=pairs,
            seed=seed,
            budget_s=budget,
            cache=cache_folder(ctx),
            progress=show,
        )
    neighbours = _by_neighbour(report.measurements)
    if as_json:
        show_json(
            {
                "journal": str(report.journal),
                "complete": report.complete,
                "planned": report.planned,
                "trials": report.measurements,
                "neighbours": neighbours,
                "seconds": round(report.seconds, 1),
            }
        )
    else:
        _show(report, neighbours)
    show_how_to_continue(report.complete)


def _by_neighbour(rows: "Sequence[CorunMeasurement]") -> list[dict[str, Any]]:
    """Factors by target and neighbour; all kernels count as one neighbour."""
    from opmark.core.measurements.estimate import quantile

    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.factor is not None:
            found[row.target, row.neighbour if row.beside is None else "kernels"].append(row.factor)
    return [
        {
            "target": target,
            "neighbour": name,
            "trials": len(factors),
            "median_factor": quantile(factors, 0.5),
            "p90_factor": quantile(factors, 0.9),
        }
        for (target, name), factors in sorted(found.items())
    ]


def _show(report: "CorunReport", neighbours: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["target"],
            one["neighbour"],
            f"{one['trials']:,}",
            f"{one['median_factor']:.3f}",
            f"{one['p90_factor']:.3f}",
        )
        for one in neighbours
    ]
    show_table(("target", "beside", "kernels", "median factor", "9 of 10 below"), rows, left=2)
    failed = sum(row.factor is None for row in report.measurements)
    click.echo(
        f"{counted(len(report.measurements), 'trial')} of {report.planned:,}, {failed:,} could not be measured. "
        f"{format_duration(report.seconds)}: {report.journal}",
        err=True,
    )
