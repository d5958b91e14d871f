"""`opmark bench`: what to measure, measuring it, and how well that can be done here."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.commands.bench.networks import REPORTS
from opmark.cli.completers import suites
from opmark.cli.options import DURATION, PERCENT, cache_folder, datasets_folder, suites_folder, workspace
from opmark.cli.text.terminal import json_option, progress_bar, show_json, show_table, show_text
from opmark.core.errors import ExitCode, NothingSelectedError, UsageError
from opmark.core.units import format_bytes, format_count, format_duration, format_ns

if TYPE_CHECKING:
    from opmark.bench.run.noise import Noise
    from opmark.bench.run.progress import Progress, RunSummary
    from opmark.core.work import Work
    from opmark.studies.active_sampling.run import ActiveSummary

_shard_option = click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="Only part I of N.")


@click.group()
def bench() -> None:
    """Measure kernels and networks on this machine."""


@bench.command("list", epilog="Example: opmark bench list")
@json_option
@click.pass_context
def list_suites(ctx: click.Context, as_json: bool) -> None:
    """List the suites of the workspace and those shipped with OpMark."""
    from opmark.bench.suite.shipped import suites
    from opmark.bench.suite.suite import load_suite

    rows = [(path, load_suite(path)) for path in suites(suites_folder(ctx)).values()]
    if as_json:
        show_json(
            [
                {
                    "name": suite.name,
                    "targets": suite.targets,
                    "quality": suite.quality,
                    "budget": suite.budget,
                    "description": suite.description,
                    "path": str(path),
                }
                for path, suite in rows
            ]
        )
        return
    show_table(
        ("suite", "quality", "targets", "description"),
        [(suite.name, suite.quality, ", ".join(suite.targets), suite.description) for _, suite in rows],
        left=4,
    )


@bench.command("plan", epilog="Example: opmark bench plan small")
@click.argument("suite", shell_complete=suites)
@_shard_option
@json_option
@click.pass_context
def plan_suite(ctx: click.Context, suite: str, shard: str, as_json: bool) -> None:
    """Show what SUITE (a name or a YAML file) would measure here.

    And how long that may take, by the pace that was recorded for its quality. Targets that are not here, such as a
    GPU's, are planned for all the same.
    """
    from opmark.bench.suite.duration import duration
    from opmark.bench.suite.plan import parse_shard, plan
    from opmark.bench.suite.shipped import find_suite
    from opmark.bench.suite.suite import load_suite

    part = parse_shard(shard)
    planned = plan(
        load_suite(find_suite(suite, suites_folder(ctx))), shard=part, cache=cache_folder(ctx), elsewhere=True
    )
    takes = duration(planned)
    if as_json:
        show_json(
            {
                "suite": planned.suite.name,
                "duration": takes,
                "absent": planned.absent,
                "kernels": [
                    {
                        "trial": trial.trial,
                        "target": trial.target,
                        "kind": trial.kernel.kind,
                        "dtype": trial.kernel.params.get("dtype"),
                        "params": trial.kernel.params,
                        "flops": trial.work.flops,
                        "moved_bytes": trial.work.moved_bytes,
                    }
                    for trial in planned.kernels
                ],
                "networks": [
                    {
                        "trial": trial.trial,
                        "target": trial.target,
                        "network": trial.network,
                        "role": trial.role,
                        "batch": trial.batch,
                    }
                    for trial in planned.networks
                ],
            }
        )
        return
    groups: dict[tuple[str, str, str], list[Work]] = defaultdict(list)
    for trial in planned.kernels:
        groups[trial.target, str(trial.kernel.params.get("dtype", "")), trial.kernel.kind].append(trial.work)
    show_table(
        ("target", "type", "kind", "kernels", "most FLOPs", "most traffic"),
        [
            (
                *group,
                f"{len(found):,}",
                format_count(max(work.flops for work in found)),
                format_bytes(max(work.moved_bytes for work in found)),
            )
            for group, found in sorted(groups.items())
        ],
        left=3,
    )
    if planned.networks:
        show_table(
            ("target", "network", "role", "batch"),
            [(trial.target, trial.network, trial.role, str(trial.batch)) for trial in planned.networks],
            left=3,
        )
    totals = Counter((trial.target, str(trial.kernel.params.get("dtype", ""))) for trial in planned.kernels)
    for (target, dtype), count in sorted(totals.items()):
        click.echo(f"{target}: {count:,} {dtype} kernels.", err=True)
    click.echo(f"{len(planned.kernels):,} kernels and {len(planned.networks):,} networks.", err=True)
    low, high = format_duration(takes.low_s), format_duration(takes.high_s)
    for target, reason in planned.absent.items():
        click.echo(f"{target} cannot be measured here: {reason}.", err=True)
    about = f"It takes up to {high}, its budget" if takes.budgeted else f"About {low} to {high}"
    click.echo(f"{about}: {takes.assumes}.", err=True)


@bench.command("run", epilog="Example: opmark bench run small --budget 30m")
@click.argument("suite", shell_complete=suites)
@click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h. Default: the suite's own.")
@click.option(
    "--target-error",
    type=PERCENT,
    help="Measure in rounds, where predictions are least sure, until their error is this small: 5%.",
)
@click.option(
    "--again",
    type=click.Choice(("low_quality", "failed")),
    help="Measure only what the log holds as that, once more, into the same log.",
)
@_shard_option
@click.option(
    "--journal",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The log to write, and to go on from. Default: bench/journals/SUITE[-I-of-N].jsonl.",
)
@json_option
@click.pass_context
def run_suite(
    ctx: click.Context,
    *,
    suite: str,
    budget: float | None,
    target_error: float | None,
    again: str | None,
    shard: str,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Measure SUITE, or go on with it.

    SUITE is a name or a YAML file; the same command again goes on where it stopped. What --again measures stands beside
    the first trial: `opmark datasets build` takes the better one by its quality, never by its value, and keeps the
    other as a repeat.
    """
    from opmark.bench.run.runner import run
    from opmark.bench.suite.plan import parse_shard
    from opmark.bench.suite.shipped import find_suite
    from opmark.bench.suite.suite import load_suite

    if budget is not None and budget <= 0:
        raise UsageError(f"a budget of {budget:g} s leaves no time to measure", hint="write it like 90s, 10m or 2h")
    if again and target_error is not None:
        raise UsageError("--again and --target-error exclude each other", hint="run twice, with one of them each")
    part = parse_shard(shard)
    chosen = load_suite(find_suite(suite, suites_folder(ctx)))
    if journal is None:
        suffix = "" if part[1] == 1 else f"-{part[0] + 1}-of-{part[1]}"
        journal = workspace(ctx).journals / f"{chosen.name}{suffix}.jsonl"
    if again and not journal.exists():
        raise NothingSelectedError("nothing was measured yet", where=str(journal), hint="run without --again first")
    with progress_bar() as bar:
        task = bar.add_task(chosen.name, total=None)

        def show(progress: "Progress") -> None:
            what = progress.doing or chosen.name
            bar.update(task, completed=progress.done, total=progress.total, description=what, left_s=progress.left_s)

        if target_error is None:
            summary, active = (
                run(
                    chosen,
                    journal=journal,
                    budget_s=budget,
                    shard=part,
                    progress=show,
                    cache=cache_folder(ctx),
                    again=again or "",
                ),
                None,
            )
        else:
            from opmark.studies.active_sampling.run import run_actively

            active = run_actively(
                chosen,
                journal=journal,
                target_error=target_error,
                budget_s=budget,
                shard=part,
                progress=show,
                announce=lambda text: click.echo(text, err=True),
                cache=cache_folder(ctx),
            )
            summary = active.run
    _show_summary(summary, active, as_json)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


@bench.command(epilog="Example: opmark bench noise --seconds 20 --target onnxruntime-cpu-t1")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.5, max=600),
    default=4.0,
    show_default=True,
    help="How long to watch it.",
)
@click.option("--target", default="", help="Measure a kernel of this target too, for half as long.")
@json_option
@click.pass_context
def noise(ctx: click.Context, seconds: float, target: str, as_json: bool) -> None:
    """Say how noisy this machine is right now.

    And how long to wait, or how many samples a label takes. Where a release of this device is at hand, also whether the
    clock is slower than was usual then: in a slow hour kernels may be measured, whole networks should not.
    """
    from opmark.bench.run.noise import measure
    from opmark.core.canonical import plain
    from opmark.studies.machine.clock import clock_now

    found = measure(seconds, target=target)
    folder = datasets_folder(ctx)
    clock = None if folder is None else clock_now(found, folder)
    if as_json:
        show_json({**plain(found), "clock": clock})
        return
    pressure = "unknown" if found.pressure is None else f"{found.pressure:.0f} % of the last 10 s"
    show_table(
        ("this machine", "now"),
        [
            ("uninterrupted samples", f"{found.clean_fraction:.0%}"),
            ("spread of the compute sentinel", f"{found.compute_spread:.1%}"),
            ("spread of the memory sentinel", f"{found.memory_spread:.1%}"),
            ("drift of the compute sentinel", f"{found.drift:+.1%}"),
            (
                "preemptions",
                "unknown" if found.preemptions_per_s is None else f"{found.preemptions_per_s:.0f} a second",
            ),
            ("processor time stolen", "unknown" if found.stolen is None else f"{found.stolen:.1%}"),
            ("waiting for a processor", pressure),
            ("quiet rounds", "unknown" if found.quiet_share is None else f"{found.quiet_share:.0%}"),
            *([] if clock is None else [(f"time beside {clock.release}", f"{clock.ratio - 1:+.1%}")]),
            ("bias of a plain median", f"{found.median_bias:+.1%}"),
            *_reference_rows(found),
            ("real-time priority", "permitted" if found.fifo else "not permitted"),
        ],
    )
    show_text(f"{found.verdict[0].upper()}{found.verdict[1:]}: {found.advice}.")
    if clock is not None and clock.advice:
        show_text(clock.advice)


def _reference_rows(found: "Noise") -> list[tuple[str, str]]:
    reference = found.reference
    if reference is None:
        return []
    return [
        (f"label of the {reference.name}", f"{format_ns(reference.label_ns)} ± {reference.half_width:.1%}"),
        ("its median and mean above that", f"{reference.median_bias:+.1%}, {reference.mean_bias:+.1%}"),
    ]


@bench.command(epilog="Example: opmark bench backends")
@json_option
def backends(as_json: bool) -> None:
    """List the runtimes and the targets they offer here."""
    from opmark.bench.clock.machine import device_slug
    from opmark.bench.worker.backend import BACKENDS

    reasons = {backend.name: backend.unavailable() for backend in BACKENDS}
    targets = {
        backend.name: tuple(target.name for target in backend.targets(device_slug()))
        for backend in BACKENDS
        if reasons[backend.name] is None
    }
    if as_json:
        show_json(
            [
                {"name": name, "available": reason is None, "reason": reason, "targets": targets.get(name, ())}
                for name, reason in reasons.items()
            ]
        )
        return
    rows = [(name, reason or ", ".join(targets[name])) for name, reason in reasons.items()]
    show_table(("backend", "targets"), rows, left=2)


def _show_summary(summary: "RunSummary", active: "ActiveSummary | None", as_json: bool) -> None:
    if as_json:
        rounds = {} if active is None else _rounds_document(active)
        show_json(
            {
                **rounds,
                "suite": summary.suite,
                "journal": str(summary.journal),
                "planned": summary.planned,
                "done": summary.done,
                "complete": summary.complete,
                "statuses": summary.statuses,
                "seconds": round(summary.seconds, 1),
            }
        )
        return
    statuses = ", ".join(f"{count:,} {status}" for status, count in summary.statuses.items())
    click.echo(
        f"{summary.done:,} of {summary.planned:,} trials ({statuses}) in {format_duration(summary.seconds)}: "
        f"{summary.journal}"
    )
    if active is not None:
        click.echo(f"Stopped: {active.curve.stopped}. Accuracy by time: {active.folder / 'curve.html'}")
    if not summary.complete and (active is None or not active.finished):
        click.echo("Run the same command to go on.", err=True)


def _rounds_document(active: "ActiveSummary") -> "dict[str, object]":
    points = active.curve.points
    return {
        "stopped": active.curve.stopped,
        "target_error": active.curve.target_error,
        "targets": points[-1].targets if points else {},
        "curve": str(active.folder / "curve.json"),
    }


for _report in REPORTS:
    bench.add_command(_report)

COMMAND = bench
