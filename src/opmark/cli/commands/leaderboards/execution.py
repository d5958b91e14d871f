"""`opmark leaderboards execute`: a placement on the devices of this machine, beside its prediction."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opmark.cli.commands.leaderboards._options import problem_argument
from opmark.cli.options import DURATION, FILE, chosen_sizes, json_option, predictors_workspace, size_options
from opmark.cli.text.terminal import progress_bar, show_json, show_note, show_table, show_warning
from opmark.core.units import counted, format_ns

if TYPE_CHECKING:
    from opmark.leaderboards.problem.problem import Problem
    from opmark.studies.execution.report import ExecutionReport


@click.command(epilog="Example: opmark leaderboards execute problem.json solution.json")
@problem_argument
@click.argument("solution_file", metavar="SOLUTION", type=FILE)
@click.option(
    "--repeat", "repeats", type=click.IntRange(1, 10_000), default=30, show_default=True, help="The executions."
)
@click.option(
    "--patience",
    type=DURATION,
    default="30s",
    show_default=True,
    help="The time after which a silent process is ended.",
)
@size_options
@click.option("--trace", type=FILE, help="Write plan and execution as a Chrome trace to this file (Perfetto opens it).")
@click.option("--page", type=FILE, help="Write plan and execution, one above the other, to this HTML file.")
@json_option
@click.pass_context
def execute(
    ctx: click.Context,
    *,
    problem_file: Path,
    solution_file: Path,
    repeats: int,
    patience: float,
    dimensions: tuple[str, ...],
    batch: int | None,
    size: int | None,
    trace: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Execute SOLUTION on the devices of this machine.

    The measured makespan, told at the state of the labels, stands beside the predicted one. Every device is a process
    on cores of its own. Tensors go through shared memory, in the planned order. The outputs must equal those of the
    undivided network; the exit code is 1 where they do not.
    """
    from opmark.core.errors import CheckFailedError
    from opmark.core.files import write_json, write_text
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.search.compilation import compile_once, is_compiled
    from opmark.studies.execution.report import execute_solution, execution_page, execution_trace
    from opmark.studies.execution.stage import ExecutionStage

    problem = load_problem(problem_file)
    solution = load_solution(solution_file, problem)
    if not is_compiled():
        show_note("compiling the simulator first, once per version: nothing else may run beside an execution")
    compile_once()
    _note_other_machines(problem)
    sizes = chosen_sizes(dimensions, batch, size)
    with (
        progress_bar(transient=True) as bar,
        ExecutionStage(problem, dimensions=sizes, patience_s=patience) as stage,
    ):
        task = bar.add_task("executing", total=None)
        found = execute_solution(
            stage,
            solution,
            repeats=repeats,
            told_at=_told_at(ctx, problem),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if trace is not None:
        write_json(trace, execution_trace(found))
    if page is not None:
        write_text(page, execution_page(found))
    if as_json:
        show_json(found.document())
    else:
        _show(found)
    if not found.outputs_equal:
        raise CheckFailedError(
            f"an output differs by {found.largest_difference:.2g} of its largest element from the undivided network's"
        )


def _told_at(ctx: click.Context, problem: "Problem") -> tuple[Mapping[str, float], ...]:
    """This machine's readings at the state of the labels, empty without a workspace that knows them."""
    from opmark.core.errors import OpMarkError
    from opmark.studies.execution.label_state import label_readings

    try:
        return label_readings(problem, predictors_workspace(ctx))
    except OpMarkError:
        return ()


def _note_other_machines(problem: "Problem") -> None:
    """Say where costs were measured elsewhere: they predict another machine."""
    from opmark.bench.clock.machine import device_slug

    here = device_slug()
    others = {device.target.split("/")[0] for device in problem.cluster.devices if "/" in device.target} - {here}
    if others:
        show_note(f"the costs of {problem.name} are those of {', '.join(sorted(others))}, and this machine is {here}")


def _show(found: "ExecutionReport") -> None:
    click.echo(
        f"{found.problem.name}: predicted {format_ns(found.predicted_ns)}, measured {format_ns(found.measured_ns)} "
        f"({found.error:+.1%}; {counted(len(found.makespans_ns), 'execution')}, spread {found.repeat_spread:.1%})"
    )
    click.echo(
        f"Told at the state of the predictors' labels (error {found.standard_error:.1%});"
        f" {format_ns(found.raw_ns)} by the clock."
        if any(map(any, found.states))
        else "The state of the predictors' labels is unknown: this is the time of the clock."
    )
    parts = found.difference
    rows = (
        ("kernels alone", parts.kernels_ns),
        ("slowdown by the neighbour", parts.slowdown_ns),
        ("transfers", parts.transfers_ns),
        ("waiting and all the rest", parts.waiting_ns),
    )
    cells = [(name, f"{ns:+,} ns", f"{ns / found.measured_ns:+.1%}") for name, ns in rows]
    show_table(("measured minus predicted", "time", "of the makespan"), cells)
    if found.outputs_equal:
        click.echo("The outputs equal those of the undivided network.")
    else:
        show_warning("the outputs differ from those of the undivided network")
