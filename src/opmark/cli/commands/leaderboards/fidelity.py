"""`opmark leaderboards fidelity` and `fidelity-run`: the error of the simulator on real devices."""

import math
from typing import Any

import click

from opmark.cli import completers
from opmark.cli.options import DURATION, json_option, listed, workspace
from opmark.cli.text.terminal import decimals_text, run_progress, share_text, show_json, show_note, show_table
from opmark.core.units import counted

_COLUMNS = ("device", "track", "problems", "placements", "median error", "noise floor", "tau", "repeat tau", "pairs")
_LAST_COLUMNS = ("regret", "repeat regret", "error by the clock", "noise floor by the clock")


@click.command(epilog="Example: opmark leaderboards fidelity --json")
@click.option("--device", default="", help="Only this device.")
@click.option("--track", "track_name", default="", shell_complete=completers.tracks, help="Only this track.")
@json_option
@click.pass_context
def fidelity(ctx: click.Context, *, device: str, track_name: str, as_json: bool) -> None:
    """Show the error of the simulator on real devices.

    The median error of the makespan, Kendall's tau between predicted and measured ranking, the regret of taking the
    predicted best, and the noise floor: the difference between two visits to one placement. Repeat tau and
    repeat regret put one visit in place of the prediction, and judge it by another. Makespans are told at the
    state of the labels; beside them stand error and noise floor by the clock.
    """
    from opmark.leaderboards.fidelity.figures import fidelity_figures
    from opmark.leaderboards.fidelity.records import stored_records

    records = stored_records(workspace(ctx).leaderboards)
    found = fidelity_figures(one for one in records if device in {"", one.device} and track_name in {"", one.track})
    if as_json:
        show_json(found)
        return
    if not found:
        click.echo("No placement was executed yet: opmark leaderboards fidelity-run")
        return
    rows = [
        [
            one.device,
            one.track,
            str(one.problems),
            str(one.n),
            f"{one.median_error:.1%}",
            share_text(one.noise_floor),
            decimals_text(one.tau),
            decimals_text(one.repeat_tau),
            str(one.pairs),
            f"{one.regret:.1%}",
            share_text(one.repeat_regret),
            share_text(one.raw_median_error),
            share_text(one.raw_noise_floor),
        ]
        for one in found
    ]
    show_table((*_COLUMNS, *_LAST_COLUMNS), rows, left=2)
    for one in found:
        shares = ", ".join(f"{name} {share:+.1%}" for name, share in one.parts.items())
        click.echo(f"{one.device}, {one.track}: measured minus predicted is {shares} of the makespan (medians).")


@click.command(
    name="fidelity-run",
    epilog="Example: opmark leaderboards fidelity-run --budget 40m",
)
@click.option("--models", default="", help="The networks, separated by commas. Default: a list of branchy ones.")
@click.option("--clusters", default="", help="Out of 2onnx, 2torch, onnx-torch. Default: all of them.")
@click.option("--placers", default="", shell_complete=completers.placers, help="The placers. Default: eight of them.")
@click.option(
    "--visits", type=click.IntRange(1, 1000), default=3, show_default=True, help="The visits to every problem."
)
@click.option(
    "--repeat", "repeats", type=click.IntRange(1, 1000), default=20, show_default=True, help="Executions per visit."
)
@click.option("--planning", type=DURATION, default="2s", show_default=True, help="The planning time of a placer.")
@click.option("--budget", type=DURATION, help="The time of the whole run: 90s, 10m, 2h. Default: as long as it takes.")
@click.option("--predictors", default="", help="The device whose predictors give the costs. Default: this machine.")
@json_option
@click.pass_context
def fidelity_run(
    ctx: click.Context,
    *,
    models: str,
    clusters: str,
    placers: str,
    visits: int,
    repeats: int,
    planning: float,
    budget: float | None,
    predictors: str,
    as_json: bool,
) -> None:
    """Execute placements of networks on this machine.

    Every execution is stored at once in leaderboards/fidelity/: an interrupted run goes on where it stopped. The visits
    of one problem lie apart, with all other problems between them. Problems come in an order that takes every network
    and every cluster early, and within a --budget only so many are begun that each can be visited twice.
    """
    from opmark.core.errors import UsageError
    from opmark.leaderboards.fidelity.figures import fidelity_figures
    from opmark.studies.execution import fidelity_plan as plans
    from opmark.studies.execution.fidelity_run import measure_fidelity

    chosen = tuple(listed(clusters)) or tuple(plans.CLUSTERS)
    unknown = [name for name in chosen if name not in plans.CLUSTERS]
    if unknown:
        raise UsageError(f"no cluster {unknown[0]!r}", hint=f"known: {', '.join(plans.CLUSTERS)}")
    plan = plans.FidelityPlan(
        models=tuple(listed(models)) or plans.MODELS,
        clusters=chosen,
        placers=tuple(listed(placers)) or plans.PLACERS,
        visits=visits,
        repeats=repeats,
        planning_s=planning,
        predictors=predictors,
        limit_s=math.inf if budget is None else budget,
    )
    with run_progress("fidelity") as progress:
        found = measure_fidelity(workspace(ctx), plan, progress)
    for sentence in found.left_out:
        show_note(f"left out: {sentence}")
    if found.not_begun:
        show_note(f"no time for {counted(len(found.not_begun), 'problem')}: {', '.join(found.not_begun)}")
    placements = [one for record in found.records for one in record.placements]
    document = {
        "problems": len(found.records),
        "placements": len(placements),
        "refused": sum(bool(one.reason) for one in placements),
        "unequal": sum(not one.outputs_equal for one in placements),
        "left_out": found.left_out,
        "not_begun": found.not_begun,
        "figures": fidelity_figures(found.records),
    }
    if as_json:
        show_json(document)
    else:
        _show_run(document)


def _show_run(document: dict[str, Any]) -> None:
    click.echo(
        f"{counted(document['problems'], 'problem')}, {counted(document['placements'], 'placement')}; "
        f"{document['refused']} cannot be executed, {document['unequal']} gave other outputs"
    )
    for one in document["figures"]:
        tau, floor = decimals_text(one.tau), share_text(one.noise_floor)
        click.echo(f"median error {one.median_error:.1%}, tau {tau}, regret {one.regret:.1%}, noise floor {floor}")
