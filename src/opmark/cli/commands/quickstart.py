"""`opmark quickstart`: measure, predict, place and report on this machine, within minutes."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.options import FOLDER, FiniteRange, json_option
from opmark.cli.text.terminal import progress_bar, show_json, show_note, show_table
from opmark.core.plain_text import one_line
from opmark.core.units import counted, format_duration, format_ns

if TYPE_CHECKING:
    from opmark.bench.run.progress import RunProgress
    from opmark.studies.quickstart.run import Quickstart


@click.command(epilog="Example: opmark quickstart --minutes 4")
@click.option(
    "--workspace",
    "folder",
    type=FOLDER,
    default=Path("quickstart"),
    show_default=True,
    help="The folder for all results; running the same command again continues there.",
)
@click.option(
    "--minutes",
    type=FiniteRange(min=1.0),
    default=6.0,
    show_default=True,
    help="The approximate time limit in minutes.",
)
@json_option
def quickstart(folder: Path, minutes: float, as_json: bool) -> None:
    """Profile this machine, predict, place, and write a report.

    The kernels correct the predictor of the most similar known device. Predictors are checked on networks that no
    sample came from; placers are ranked on one of them. The suite `quickstart` lists the measurements. With --json:
    {"networks": [{"name", "target", "predicted_ns", "measured_ns", "error"}], "median_error", "max_error", "donors",
    "standings": [{"rank", "name", "score"}], "verdict": {"word", "why", "advice", "noise_floor"}, "report", "seconds"};
    a network's error is a signed fraction, median and maximum are of absolute values; `donors` names the predictor that
    was corrected for each target, or null.
    """
    from opmark.bench.suite.suite import find_suite
    from opmark.studies.quickstart.run import quickstart as study

    with progress_bar(transient=True) as display:
        task = display.add_task("measuring", total=None)

        def show(now: "RunProgress") -> None:
            what = now.doing or "measuring"
            display.update(task, total=now.total, completed=now.done, description=what, left_s=now.left_s)

        said: list[str] = []

        def announce(text: str) -> None:
            if said:  # The steps after measuring have no progress bar, only their names.
                display.stop()
                display.update(task, total=display.tasks[task].completed)
                display.add_task(one_line(text).rstrip(" …."), total=None)
            said.append(text)
            display.console.print(one_line(text), highlight=False, markup=False, soft_wrap=True)

        result = study(folder, find_suite("quickstart"), minutes=minutes, announce=announce, progress=show)
    if as_json:
        show_json(result.document())
    else:
        _show(result)


def _show(result: "Quickstart") -> None:
    show_table(
        ("network", "target", "predicted", "measured", "error"),
        [
            (
                network.name,
                network.target,
                format_ns(network.predicted_ns),
                format_ns(network.measured_ns),
                f"{100 * network.error:+.1f} %",
            )
            for network in result.networks
        ],
        title="Networks that no sample came from",
        left=2,
    )
    document = result.document()
    devices = counted(len(result.contest.problem.cluster.devices), "device")
    click.echo(
        f"Median error {100 * document['median_error']:.1f} %, largest {100 * document['max_error']:.1f} %, "
        f"over {counted(len(result.networks), 'network')}."
    )
    show_table(
        ("rank", "placer", "score", "latency"),
        [
            (str(row.rank), row.name, f"{row.score:.3f}", _cost(result.contest.cost_ns(row.name)))
            for row in result.contest.standings.rows
        ],
        title=f"Placers of {result.contest.problem.name} on {devices}",
        left=2,
    )
    if not result.contest.compiled:
        show_note(
            "the placers ran in plain Python, because the search was not compiled yet; the next quickstart is faster"
        )
    by_reason: dict[str, list[str]] = {}
    for name, reason in result.contest.standings.not_run.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        click.echo(f"Not run: {', '.join(names)}: {reason}.", err=True)
    click.echo(f"Done in {format_duration(result.seconds)}. Report: {result.report}")
    click.echo(result.verdict.sentence)


def _cost(cost_ns: float | None) -> str:
    return "invalid" if cost_ns is None else format_ns(cost_ns)


COMMAND = quickstart
