"""`opmark bench models`: measure whole networks."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.commands.bench._options import (
    budget_option,
    default_journal,
    journal_option,
    quality_option,
    show_how_to_continue,
    target_option,
)
from opmark.cli.completers import models as model_names
from opmark.cli.options import DEFAULT_TARGET, cache_folder, json_option, suites_folder
from opmark.cli.text.terminal import MISSING, run_progress, show_json, show_table
from opmark.core.errors import ExitCode, UsageError
from opmark.core.units import format_bytes, format_duration, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.bench.run.progress import RunSummary
    from opmark.core.measurements.measurement import NetworkMeasurement


@click.command(epilog="Example: opmark bench models light-resnet50 bert-base --batch 1,8")
@click.argument("names", nargs=-1, shell_complete=model_names)
@click.option("--suite", help="The networks of this suite (a name or a YAML file).")
@click.option("--all-small", is_flag=True, help="Every network of the zoo that is small enough for a test.")
@click.option("--all", "everything", is_flag=True, help="Every network of the zoo.")
@target_option
@click.option("--batch", default="1", show_default=True, help="Batch sizes, separated by commas: 1,8.")
@click.option(
    "--size", default="1x", show_default=True, help="Sizes: 224, or 0.5x for half of each network's own size."
)
@budget_option
@quality_option
@journal_option
@json_option
@click.pass_context
def models(
    ctx: click.Context,
    *,
    names: tuple[str, ...],
    suite: str | None,
    all_small: bool,
    everything: bool,
    targets: tuple[str, ...],
    batch: str,
    size: str,
    budget: float | None,
    quality: str,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Measure whole networks: latency and peak memory.

    NAMES are networks of the zoo, .onnx files or .pt2 files. Running the same command again continues where it
    stopped; the next `opmark datasets build` includes the measurements.
    """
    from opmark.bench.run.runner import run
    from opmark.bench.suite.whole_networks import parse_batches, parse_sizes, select
    from opmark.core.measurements.journal import read_journal

    cache = cache_folder(ctx)
    selection = select(
        _chosen(names, None if suite is None else (suite, suites_folder(ctx)), all_small, everything),
        targets or (DEFAULT_TARGET,),
        batches=parse_batches(batch),
        sizes=parse_sizes(size),
        quality=quality,
        cache=cache,
    )
    for item in selection.refused:
        click.echo(f"Left out: {item.network} on {item.target}, batch {item.batch}: {item.reason}", err=True)
    path = journal or default_journal(ctx, f"models-{selection.suite.id[:8]}")
    with run_progress("models") as show:
        summary = run(selection.suite, journal=path, budget_s=budget, progress=show, cache=cache)
    rows = read_journal(path).networks
    if as_json:
        show_json(
            {
                "journal": str(path),
                "planned": summary.planned,
                "done": summary.done,
                "complete": summary.complete,
                "statuses": summary.statuses,
                "refused": selection.refused,
                "networks": rows,
                "seconds": round(summary.seconds, 1),
            }
        )
    else:
        _show(rows, summary, path)
    show_how_to_continue(summary.complete)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


def _chosen(
    names: tuple[str, ...], suite: tuple[str, Path | None] | None, all_small: bool, everything: bool
) -> list[str]:
    from opmark.bench.suite.suite import find_suite, load_suite
    from opmark.bench.suite.whole_networks import every, named_in

    chosen = [*names]
    if suite is not None:
        chosen += named_in(load_suite(find_suite(*suite)))
    if all_small or everything:
        chosen += every(small=not everything)
    if not chosen:
        raise UsageError("no network is named", hint="name networks, or pass --suite, --all-small or --all")
    return chosen


def _show(rows: "Sequence[NetworkMeasurement]", summary: "RunSummary", path: Path) -> None:
    show_table(
        ("network", "target", "status", "batch", "latency", "peak memory"),
        [
            (
                row.network,
                row.target,
                row.status if not row.reason else f"{row.status}: {row.reason}",
                str(row.batch),
                MISSING if row.latency_ns is None else format_ns(row.latency_ns),
                MISSING if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
            )
            for row in rows
        ],
        left=3,
    )
    click.echo(f"{summary.done:,} of {summary.planned:,} in {format_duration(summary.seconds)}: {path}", err=True)
