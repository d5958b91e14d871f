"""`opmark leaderboards check-trace`: a stored schedule, checked without simulating it."""

from pathlib import Path

import click

from opmark.cli.text.terminal import counted, json_option, show_json

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(name="check-trace", epilog="Example: opmark leaderboards check-trace problem.json trace.json")
@click.argument("problem_file", metavar="PROBLEM", type=FILE)
@click.argument("trace_file", metavar="TRACE", type=FILE)
@click.option("--solution", "solution_file", type=FILE, help="Simulating this must give the same trace, bit for bit.")
@json_option
def check_trace(*, problem_file: Path, trace_file: Path, solution_file: Path | None, as_json: bool) -> None:
    """Check that TRACE is a possible schedule of PROBLEM.

    Durations, slots, ports, routes, that nothing starts before its inputs are there, and that it costs what it says;
    no event is simulated for that. The exit code is 3 where it is not so.
    """
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.simulator.trace_check import check_trace_file

    problem = load_problem(problem_file)
    solution = None if solution_file is None else load_solution(solution_file, problem)
    found = check_trace_file(problem, trace_file, solution)
    if as_json:
        cost = {"unit": problem.unit, "cost": in_unit(found.cost_ns, problem.unit)}
        counts = {"kernels": found.kernels, "transfers": found.transfers}
        show_json({"valid": True, "profile": found.profile, **cost, **counts, "same": found.same})
        return
    same = "" if found.same is None else "; simulating its solution gives the same trace, bit for bit"
    click.echo(
        f"{trace_file}: valid, {format_cost(found.cost_ns, problem.unit)} ({found.profile}), "
        f"{counted(found.kernels, 'kernel')}, {counted(found.transfers, 'transfer')}{same}"
    )
