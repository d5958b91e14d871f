"""`opmark bench fusion`: find the pairs of operators that a runtime fuses."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.bench._options import (
    budget_option,
    default_journal,
    journal_option,
    quality_option,
    show_how_to_continue,
    target_option,
)
from opmark.cli.options import DEFAULT_TARGET, json_option, listed
from opmark.cli.text.terminal import MISSING, run_progress, show_json, show_table
from opmark.core.units import counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.bench.fusion.pairs import Pair
    from opmark.bench.fusion.report import FusionReport


@click.command(epilog="Example: opmark bench fusion --pairs conv+relu,conv-bn+add --quality quick")
@target_option
@click.option("--pairs", default="", help="Only these pairs, separated by commas: conv+relu,conv-bn+add.")
@budget_option
@quality_option
@journal_option
@click.option("--list", "only_list", is_flag=True, help="List the pairs and stop.")
@json_option
@click.pass_context
def fusion(
    ctx: click.Context,
    *,
    targets: tuple[str, ...],
    pairs: str,
    budget: float | None,
    quality: str,
    journal: Path | None,
    only_list: bool,
    as_json: bool,
) -> None:
    """Find the pairs of operators that become one kernel.

    The answer comes from the target's own graph and from the clock. The clock calls a pair fused where
    T1 + T2 - T12 > min(T1, T2) / 2 with 95 % confidence, at most of three shapes.
    """
    from opmark.bench.fusion.pairs import pairs_named
    from opmark.bench.fusion.report import measure_fusion

    chosen = pairs_named(listed(pairs))
    if only_list:
        _show_pairs(chosen, as_json)
        return
    path = journal or default_journal(ctx, "fusion" if quality == "full" else f"fusion-{quality}")
    with run_progress("fusion") as show:
        report = measure_fusion(
            chosen, targets or (DEFAULT_TARGET,), journal=path, quality=quality, budget_s=budget, progress=show
        )
    if as_json:
        show_json(_document(report))
    else:
        _show(report)
    show_how_to_continue(report.complete)


def _show_pairs(pairs: "Sequence[Pair]", as_json: bool) -> None:
    if as_json:
        show_json([{"pair": pair.name, "first": pair.first, "second": pair.second} for pair in pairs])
    else:
        show_table(("pair", "on"), [(pair.name, pair.domain) for pair in pairs], left=2)


def _document(report: "FusionReport") -> dict[str, Any]:
    keys = ("target", "pair", "white_box", "black_box", "differ", "note", "saving", "savings", "shapes", "kernels")
    return {
        "journal": str(report.journal),
        "complete": report.complete,
        "verdicts": [{key: getattr(item, key) for key in keys} for item in report.verdicts],
        "rows": report.rows,
        "seconds": round(report.seconds, 1),
    }


def _show(report: "FusionReport") -> None:
    rows = [
        (
            item.pair,
            item.target,
            item.white_box,
            item.black_box,
            "differ" if item.differ else "",
            item.kernels,
            MISSING if item.saving is None else f"{item.saving:.2f}",
        )
        for item in report.verdicts
    ]
    show_table(("pair", "target", "graph", "clock", "", "kernels", "saving"), rows, left=6)
    for item in report.verdicts:
        if item.note:
            click.echo(f"{item.pair}: {item.note}.")
    for reason, count in Counter(row.reason for row in report.failures).items():
        click.echo(f"{count} not measured: {reason}", err=True)
    differ = sum(item.differ for item in report.verdicts)
    undecided = sum(item.black_box == "undecided" for item in report.verdicts)
    click.echo(
        f"{counted(len(report.verdicts), 'pair')}; graph and clock differ on {differ:,}, the clock is undecided on "
        f"{undecided:,}. {format_duration(report.seconds)}: {report.journal}",
        err=True,
    )
