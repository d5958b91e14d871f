"""`opmark bench fusion`, `links`, `models` and `retest`: measurements that are no suite of kernels."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli import completers as completing
from opmark.cli.options import DURATION, PERCENT, cache_folder, suites_folder, workspace
from opmark.cli.text.terminal import counted, json_option, progress_bar, show_json, show_table
from opmark.core.errors import ExitCode, UsageError
from opmark.core.units import format_bytes, format_count, format_duration, format_ns

if TYPE_CHECKING:
    from opmark.bench.fusion.report import FusionReport
    from opmark.bench.links.measuring import LinkReport
    from opmark.bench.run.progress import Progress

_DEFAULT_TARGET = "onnxruntime-cpu-t1"
_journal_option = click.option(
    "-o",
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The log to write, and to go on from. Default: in bench/journals/.",
)
_target_option = click.option(
    "--target", "targets", multiple=True, help=f"May be repeated. Default: {_DEFAULT_TARGET}.", metavar="TARGET"
)
_quality_option = click.option(
    "--quality", default="full", show_default=True, help="How carefully: full or quick.", metavar="NAME"
)


@click.command(epilog="Example: opmark bench fusion --pairs conv+relu,conv-bn+add --quality quick")
@_target_option
@click.option("--pairs", default="", help="Only these, separated by commas: conv+relu,conv-bn+add.")
@click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h.")
@_quality_option
@_journal_option
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
    """Find out which pairs of operators become one kernel.

    By the target's own graph, and by the clock. The clock says fused where T1 + T2 - T12 > min(T1, T2) / 2 with 95 %
    confidence, at most of three shapes.
    """
    from opmark.bench.fusion.pairs import pairs_named
    from opmark.bench.fusion.report import measure_fusion

    chosen = pairs_named([name.strip() for name in pairs.split(",") if name.strip()])
    if only_list:
        if as_json:
            show_json([{"pair": pair.name, "first": pair.first, "second": pair.second} for pair in chosen])
        else:
            show_table(("pair", "on"), [(pair.name, pair.domain) for pair in chosen], left=2)
        return
    path = journal or _journal(ctx, "fusion" if quality == "full" else f"fusion-{quality}")
    with _progress("fusion") as show:
        report = measure_fusion(
            chosen, targets or (_DEFAULT_TARGET,), journal=path, quality=quality, budget_s=budget, progress=show
        )
    _show_fusion(report, as_json)
    _show_what_is_left(report.complete)


@click.command(epilog="Example: opmark bench links --devices cores")
@click.option("--devices", default="", help="cores, cuda or cuda:0, separated by commas. Default: whatever is here.")
@click.option("--most", default="256MiB", show_default=True, help="The largest transfer.")
@_journal_option
@json_option
@click.pass_context
def links(ctx: click.Context, *, devices: str, most: str, journal: Path | None, as_json: bool) -> None:
    """Measure transfers between cores, and between host and GPU.

    From 64 B to 256 MiB, as straight lines with their largest error.
    """
    from opmark.bench.links.measuring import LEAST_BYTES, measure_links, present
    from opmark.core.units import parse_size_bytes

    most_bytes = parse_size_bytes(most)
    if most_bytes < 2 * LEAST_BYTES:
        raise UsageError(f"{most} leaves no two sizes to measure", hint="write it like 64MiB")
    named = tuple(name.strip() for name in devices.split(",") if name.strip())
    with _progress("links") as show:
        report = measure_links(
            named or present(), journal=journal or _journal(ctx, "links"), most_bytes=most_bytes, progress=show
        )
    _show_links(report, as_json)


@click.command(epilog="Example: opmark bench models light-resnet50 bert-base --batch 1,8")
@click.argument("names", nargs=-1, shell_complete=completing.models)
@click.option("--suite", help="The networks of this suite (a name or a YAML file).")
@click.option("--all-small", is_flag=True, help="Every network of the zoo that is small enough for a test.")
@click.option("--all", "everything", is_flag=True, help="Every network of the zoo.")
@_target_option
@click.option("--batch", default="1", show_default=True, help="Batch sizes, separated by commas: 1,8.")
@click.option("--size", default="1x", show_default=True, help="Sizes: 224, or 0.5x of each network's own.")
@click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h.")
@_quality_option
@_journal_option
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

    NAMES are networks of the zoo, .onnx or .pt2 files. The same command again goes on where it stopped; the next
    `opmark datasets build` holds what was measured.
    """
    from opmark.bench.run.runner import run
    from opmark.bench.suite.shipped import find_suite
    from opmark.bench.suite.suite import load_suite
    from opmark.bench.suite.whole_networks import every, named_in, parse_batches, parse_sizes, select
    from opmark.core.journal import read_journal

    chosen = [*names]
    if suite is not None:
        chosen += named_in(load_suite(find_suite(suite, suites_folder(ctx))))
    if all_small or everything:
        chosen += every(small=not everything)
    if not chosen:
        raise UsageError("no network is named", hint="name some, or pass --suite, --all-small or --all")
    cache = cache_folder(ctx)
    selection = select(
        chosen,
        targets or (_DEFAULT_TARGET,),
        batches=parse_batches(batch),
        sizes=parse_sizes(size),
        quality=quality,
        cache=cache,
    )
    for item in selection.refused:
        click.echo(f"Left out: {item.network} on {item.target}, batch {item.batch}: {item.reason}", err=True)
    path = journal or _journal(ctx, f"models-{selection.suite.id[:8]}")
    with _progress("models") as show:
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
        show_table(
            ("network", "target", "status", "batch", "latency", "peak memory"),
            [
                (
                    row.network,
                    row.target,
                    row.status if not row.reason else f"{row.status}: {row.reason}",
                    str(row.batch),
                    "–" if row.latency_ns is None else format_ns(row.latency_ns),
                    "–" if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
                )
                for row in rows
            ],
            left=3,
        )
        click.echo(f"{summary.done:,} of {summary.planned:,} in {format_duration(summary.seconds)}: {path}", err=True)
    _show_what_is_left(summary.complete)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


@click.command(epilog="Example: opmark bench retest full --budget 20m")
@click.argument("suite", shell_complete=completing.suites)
@click.option("--share", type=PERCENT, default="5%", show_default=True, help="How much of it.")
@click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h.")
@click.option(
    "--first",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The log to compare with. Default: bench/journals/SUITE.jsonl.",
)
@_journal_option
@json_option
@click.pass_context
def retest(
    ctx: click.Context,
    *,
    suite: str,
    share: float,
    budget: float | None,
    first: Path | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Measure a random share of SUITE again, and compare.

    Kernels and networks, in new processes. They are taken from the half that was finished first, four networks at
    least; `opmark datasets build` keeps both rows.
    """
    from opmark.bench.run.repeats import agreement, retest_suite
    from opmark.bench.run.runner import run
    from opmark.bench.suite.shipped import find_suite
    from opmark.bench.suite.suite import load_suite

    whole = load_suite(find_suite(suite, suites_folder(ctx)))
    before = first or _journal(ctx, whole.name)
    again = journal or before.with_name(f"{before.stem}-retest.jsonl")
    with _progress("retest") as show:
        chosen = retest_suite(whole, before, share=share)
        summary = run(chosen, journal=again, budget_s=budget, progress=show, cache=cache_folder(ctx))
    found = agreement(before, again)
    if as_json:
        show_json({"journal": str(again), "planned": summary.planned, "done": summary.done, "agreement": found})
    else:
        show_table(
            ("target", "again", "rows", "median", "90 %", "95 %", "largest"),
            [
                (
                    one.target,
                    one.what,
                    f"{one.rows:,}",
                    *(f"{part:.1%}" for part in (one.median, one.p90, one.p95, one.largest)),
                )
                for one in found
            ],
            left=2,
        )
        click.echo(f"{summary.done:,} of {summary.planned:,} in {format_duration(summary.seconds)}: {again}", err=True)
    _show_what_is_left(summary.complete)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


@contextlib.contextmanager
def _progress(name: str) -> "Iterator[Callable[[Progress], None]]":
    """A bar, as a function that a run tells how far it is."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def show(progress: "Progress") -> None:
            what = progress.doing or name
            bar.update(task, completed=progress.done, total=progress.total, description=what, left_s=progress.left_s)

        yield show


def _show_fusion(report: "FusionReport", as_json: bool) -> None:
    if as_json:
        show_json(
            {
                "journal": str(report.journal),
                "complete": report.complete,
                "verdicts": [
                    {
                        "target": item.target,
                        "pair": item.pair,
                        "white_box": item.white_box,
                        "black_box": item.black_box,
                        "differ": item.differ,
                        "note": item.note,
                        "saving": item.saving,
                        "savings": item.savings,
                        "shapes": item.shapes,
                        "kernels": item.kernels,
                    }
                    for item in report.verdicts
                ],
                "rows": report.rows,
                "seconds": round(report.seconds, 1),
            }
        )
        return
    show_table(
        ("pair", "target", "graph", "clock", "", "kernels", "saving"),
        [
            (
                item.pair,
                item.target,
                item.white_box,
                item.black_box,
                "differ" if item.differ else "",
                item.kernels,
                "–" if item.saving is None else f"{item.saving:.2f}",
            )
            for item in report.verdicts
        ],
        left=6,
    )
    for item in report.verdicts:
        if item.note:
            click.echo(f"{item.pair}: {item.note}.")
    for reason, count in Counter(row.reason for row in report.failures).items():
        click.echo(f"{count} not measured: {reason}", err=True)
    differ = sum(item.differ for item in report.verdicts)
    undecided = sum(item.black_box == "undecided" for item in report.verdicts)
    click.echo(
        f"{counted(len(report.verdicts), 'pair')}, {differ:,} on which graph and clock differ, {undecided:,} that the "
        f"clock leaves undecided, in {format_duration(report.seconds)}: {report.journal}",
        err=True,
    )


def _show_links(report: "LinkReport", as_json: bool) -> None:
    if as_json:
        show_json(
            {"journal": str(report.journal), "links": report.links, "seconds": round(report.seconds, 1)},
        )
        return
    rows = []
    for link in report.links:
        measured = bool(link.knots)
        rows.append(
            (
                link.source,
                link.destination,
                link.memory,
                link.status if not link.reason else f"{link.status}: {link.reason}",
                format_ns(link.hand_off_ns or 0.0) if measured else "–",
                format_ns(link.transfer_ns(4096)) if measured else "–",
                format_ns(link.transfer_ns(1 << 20)) if measured else "–",
                f"{format_count(link.bandwidth_bytes_per_s or 0.0)}B/s" if measured else "–",
                str(len(link.knots) - 1) if measured else "–",
                f"{link.largest_error:.1%}" if link.largest_error is not None else "–",
            )
        )
    columns = (
        *("from", "to", "memory", "status", "hand-over", "4 KiB", "1 MiB", "bandwidth", "lines"),
        "largest error",
    )
    show_table(columns, rows, left=4)
    click.echo(f"{format_duration(report.seconds)}: {report.journal}", err=True)


def _show_what_is_left(complete: bool) -> None:
    if not complete:
        click.echo("Run the same command to go on.", err=True)


def _journal(ctx: click.Context, name: str) -> Path:
    return workspace(ctx).journals / f"{name}.jsonl"


REPORTS = (fusion, links, models, retest)
