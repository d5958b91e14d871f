"""`opmark bench list`, `plan`, `run` and `retest`: suites of kernels and networks."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli.commands.bench._options import budget_option, default_journal, journal_option, show_how_to_continue
from opmark.cli.completers import suites as suite_names
from opmark.cli.options import (
    DURATION,
    FILE,
    PERCENT,
    cache_folder,
    cluster_option,
    json_option,
    on_cluster,
    suites_folder,
)
from opmark.cli.text.terminal import plan_progress, run_progress, show_json, show_note, show_table
from opmark.core.errors import ExitCode, NothingSelectedError, UsageError
from opmark.core.units import counted, format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.bench.run.progress import RunSummary
    from opmark.bench.run.repeats import Agreement
    from opmark.bench.suite.duration import EstimatedDuration
    from opmark.bench.suite.plan import Plan
    from opmark.bench.suite.suite import Suite
    from opmark.core.kernels.work import Work
    from opmark.core.measurements.environment import Environment
    from opmark.studies.active_sampling.run import ActiveSummary

_shard_option = click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="Only part I of N.")


def _suite_named(ctx: click.Context, name: str) -> "Suite":
    from opmark.bench.suite.suite import find_suite, load_suite

    return load_suite(find_suite(name, suites_folder(ctx)))


@click.command("list", epilog="Example: opmark bench list")
@json_option
@click.pass_context
def list_suites(ctx: click.Context, as_json: bool) -> None:
    """List the suites of the workspace and those shipped with OpMark."""
    from opmark.bench.suite.suite import load_suite, suites

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


@click.command("plan", epilog="Example: opmark bench plan small")
@click.argument("suite", shell_complete=suite_names)
@_shard_option
@json_option
@click.pass_context
def plan_suite(ctx: click.Context, suite: str, shard: str, as_json: bool) -> None:
    """Show what SUITE (a name or a YAML file) would measure here.

    The plan estimates the time from the pace of the suite's quality, and includes targets that this machine lacks.
    """
    from opmark.bench.suite.duration import estimated_duration
    from opmark.bench.suite.order import parse_shard
    from opmark.bench.suite.plan import plan

    with plan_progress() as show:
        planned = plan(
            _suite_named(ctx, suite), shard=parse_shard(shard), cache=cache_folder(ctx), elsewhere=True, progress=show
        )
    if as_json:
        show_json(_plan_document(planned, estimated_duration(planned)))
    else:
        _show_plan(planned, estimated_duration(planned))


def _plan_document(planned: "Plan", takes: "EstimatedDuration") -> dict[str, Any]:
    return {
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


def _show_plan(planned: "Plan", takes: "EstimatedDuration") -> None:
    groups: dict[tuple[str, str, str], list[Work]] = defaultdict(list)
    for trial in planned.kernels:
        groups[trial.target, str(trial.kernel.params.get("dtype", "")), trial.kernel.kind].append(trial.work)
    if groups:
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
        click.echo(f"{target}: {counted(count, f'{dtype} kernel')}.", err=True)
    parts = (("kernel", planned.kernels), ("network", planned.networks))
    click.echo(f"{' and '.join(counted(len(found), noun) for noun, found in parts if found)}.", err=True)
    for target, reason in planned.absent.items():
        click.echo(f"{target} cannot be measured here: {reason}.", err=True)
    low, high = (format_duration(max(1.0, seconds)) for seconds in (takes.low_s, takes.high_s))
    span = low if low == high else f"{low} to {high}"
    about = f"It takes up to {high}, its budget" if takes.budgeted else f"About {span}"
    click.echo(f"{about}: {takes.assumes}.", err=True)


@click.command("run", epilog="Example: opmark bench run small --budget 30m")
@click.argument("suite", shell_complete=suite_names)
@click.option("--budget", type=DURATION, help="Stop after this long: 90s, 10m, 2h. Default: the suite's own budget.")
@click.option(
    "--target-error",
    type=PERCENT,
    help="Measure in rounds, where predictions are least certain, until their error is this small: 5%.",
)
@click.option(
    "--again",
    type=click.Choice(("coarse", "doubtful", "low_quality", "failed")),
    help="Measure again only the trials with this status in the journal; low_quality: coarse or doubtful.",
)
@_shard_option
@cluster_option
@click.option(
    "--journal",
    type=FILE,
    help="The journal to write or to continue. Default: bench/journals/SUITE[-I-of-N].jsonl.",
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
    cluster: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Measure SUITE, or continue measuring it.

    SUITE is a name or a YAML file. The run looks at everything once, then refines the labels where it pays. It can be
    stopped at any moment; running the same command again continues. With --cluster every host measures one trial at a
    time; like hosts share the work and a journal, unlike ones get a journal each: SUITE-DEVICE-….jsonl.
    """
    from opmark.bench.suite.order import parse_shard

    if budget is not None and budget <= 0:
        raise UsageError(f"a budget of {budget:g} s leaves no time to measure", hint="write it like 90s, 10m or 2h")
    if again and target_error is not None:
        raise UsageError("--again and --target-error exclude each other", hint="run twice, once with each option")
    if cluster is not None and (again or target_error is not None):
        raise UsageError("--cluster excludes --again and --target-error", hint="measure with it alone, then without it")
    part = parse_shard(shard)
    chosen = _suite_named(ctx, suite)
    if cluster is not None:
        _run_on_cluster(ctx, chosen, cluster, shard=part, budget_s=budget, journal=journal, as_json=as_json)
        return
    if journal is None:
        suffix = "" if part[1] == 1 else f"-{part[0] + 1}-of-{part[1]}"
        journal = default_journal(ctx, f"{chosen.name}{suffix}")
    if again and not journal.exists():
        raise NothingSelectedError("nothing was measured yet", where=str(journal), hint="run without --again first")
    cache = cache_folder(ctx)
    if target_error is None:
        active = None
        summary = _run(chosen, journal=journal, shard=part, budget_s=budget, cache=cache, again=again or "")
    else:
        active = _run_in_rounds(
            chosen, journal=journal, shard=part, budget_s=budget, cache=cache, target_error=target_error
        )
        summary = active.run
    if as_json:
        show_json(_run_document(summary, active))
    else:
        _show_run(summary, active)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


def _run(
    suite: "Suite", *, journal: Path, shard: tuple[int, int], budget_s: float | None, cache: Path | None, again: str
) -> "RunSummary":
    from opmark.bench.run.runner import run

    with run_progress(suite.name) as show:
        return run(suite, journal=journal, budget_s=budget_s, shard=shard, progress=show, cache=cache, again=again)


def _run_on_cluster(
    ctx: click.Context,
    suite: "Suite",
    address: str,
    *,
    shard: tuple[int, int],
    budget_s: float | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    from opmark.bench.run.cluster_run import run_on_cluster

    part = "" if shard[1] == 1 else f"-{shard[0] + 1}-of-{shard[1]}"
    given: list[str] = []

    def journal_of(environment: "Environment") -> Path:
        given.append(environment.id)
        if journal is not None and len(given) > 1:
            raise UsageError("the cluster has unlike hosts, and each kind needs a journal", hint="leave out --journal")
        return journal or default_journal(ctx, f"{suite.name}{part}-{environment.device}-{environment.id[:6]}")

    with on_cluster(address) as workers, run_progress(suite.name) as show:
        assert workers is not None
        summaries = run_on_cluster(
            suite, workers, journal_of=journal_of, budget_s=budget_s, shard=shard, progress=show, notice=show_note
        )
    if as_json:
        show_json({"suite": suite.name, "journals": [_run_document(summary, None) for summary in summaries]})
    else:
        for summary in summaries:
            _show_run(summary, None)
    if any(summary.interrupted for summary in summaries):
        ctx.exit(ExitCode.INTERRUPTED)


def _run_in_rounds(
    suite: "Suite",
    *,
    journal: Path,
    shard: tuple[int, int],
    budget_s: float | None,
    cache: Path | None,
    target_error: float,
) -> "ActiveSummary":
    from opmark.studies.active_sampling.run import run_actively

    with run_progress(suite.name) as show:
        return run_actively(
            suite,
            journal=journal,
            target_error=target_error,
            budget_s=budget_s,
            shard=shard,
            progress=show,
            announce=lambda text: click.echo(text, err=True),
            cache=cache,
        )


def _run_document(summary: "RunSummary", active: "ActiveSummary | None") -> dict[str, Any]:
    document: dict[str, Any] = {}
    if active is not None:
        points = active.curve.points
        document = {
            "stopped": active.curve.stopped,
            "target_error": active.curve.target_error,
            "targets": points[-1].targets if points else {},
            "curve": str(active.folder / "curve.json"),
        }
    return document | {
        "suite": summary.suite,
        "journal": str(summary.journal),
        "planned": summary.planned,
        "done": summary.done,
        "complete": summary.complete,
        "statuses": summary.statuses,
        "kernels": summary.kernels,
        "networks": summary.networks,
        "seconds": round(summary.seconds, 1),
        "waited_seconds": round(summary.waited_seconds, 1),
        "median_standard_error": summary.median_standard_error,
        **{status: summary.statuses.get(status, 0) for status in ("ok", "coarse", "doubtful")},
    }


def _show_run(summary: "RunSummary", active: "ActiveSummary | None") -> None:
    statuses = ", ".join(f"{count:,} {status}" for status, count in summary.statuses.items())
    click.echo(
        f"{summary.done:,} of {summary.planned:,} trials ({statuses}) in {format_duration(summary.seconds)}: "
        f"{summary.journal}"
    )
    if summary.median_standard_error is not None:
        click.echo(f"Half of the labels have a standard error below {summary.median_standard_error:.1%}.")
    if active is not None:
        click.echo(f"Stopped: {active.curve.stopped}. Accuracy by time: {active.folder / 'curve.html'}")
    show_how_to_continue(summary.complete or (active is not None and active.finished))


@click.command(epilog="Example: opmark bench retest full --budget 20m")
@click.argument("suite", shell_complete=suite_names)
@click.option("--share", type=PERCENT, default="5%", show_default=True, help="The share of trials to measure again.")
@budget_option
@click.option("--first", type=FILE, help="The journal to compare with. Default: bench/journals/SUITE.jsonl.")
@journal_option
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

    Kernels and networks are measured in new processes. They are drawn from the half that was finished first, at least
    four networks; `opmark datasets build` keeps both rows.
    """
    from opmark.bench.run.repeats import agreement, retest_suite
    from opmark.bench.run.runner import run

    whole = _suite_named(ctx, suite)
    before = first or default_journal(ctx, whole.name)
    again = journal or before.with_name(f"{before.stem}-retest.jsonl")
    with run_progress("retest") as show:
        chosen = retest_suite(whole, before, share=share)
        summary = run(chosen, journal=again, budget_s=budget, progress=show, cache=cache_folder(ctx))
    found = agreement(before, again)
    if as_json:
        show_json({"journal": str(again), "planned": summary.planned, "done": summary.done, "agreement": found})
    else:
        _show_agreement(found)
        click.echo(f"{summary.done:,} of {summary.planned:,} in {format_duration(summary.seconds)}: {again}", err=True)
    show_how_to_continue(summary.complete)
    if summary.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


def _show_agreement(found: "Sequence[Agreement]") -> None:
    rows = [
        (one.target, one.what, f"{one.rows:,}", *(f"{x:.1%}" for x in (one.median, one.p90, one.p95, one.largest)))
        for one in found
    ]
    show_table(("target", "again", "rows", "median", "90 %", "95 %", "largest"), rows, left=2)
