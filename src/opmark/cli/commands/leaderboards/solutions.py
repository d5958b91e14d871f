"""`opmark leaderboards place`, `simulate`, `bound` and `check-trace`: one problem and its solutions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opmark.cli import completers
from opmark.cli.commands.leaderboards._options import problem_argument, seed_option
from opmark.cli.options import DURATION, FILE, json_option
from opmark.cli.text.terminal import show_json, show_note, show_table, show_warning
from opmark.core.errors import PlacementError, SubmissionError
from opmark.core.units import counted, format_bytes, format_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opmark.leaderboards.problem.problem import Problem
    from opmark.leaderboards.problem.rules.profile import PublishedModel
    from opmark.leaderboards.scoring.attempt import Attempt
    from opmark.leaderboards.scoring.robustness import Robustness
    from opmark.leaderboards.simulator.evaluation import Evaluation


# A solver of bounds does the work of about so many simulations, or more.
SOLVER_SIMULATIONS = 1_000


@click.command(epilog="Example: opmark leaderboards place problem.json --placer heft --budget 2s")
@problem_argument
@click.option(
    "--placer", "name", required=True, shell_complete=completers.placers, help="A placement algorithm: heft, opmark, …"
)
@click.option("--budget", type=DURATION, default="10s", show_default=True, help="The planning time.")
@seed_option("placers that draw random numbers")
@click.option("-o", "--output", type=FILE, help="Write the solution to this file.")
@json_option
def place(*, problem_file: Path, name: str, budget: float, seed: int, output: Path | None, as_json: bool) -> None:
    """Let a placer solve PROBLEM, and print the cost.

    No solution costs less than the lower bound beside it: the one that is stored with the problem, or else the best of
    those that `bound` prints.
    """
    from opmark.leaderboards.bounds.bounds import known_bound
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import save_solution
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.scoring.first_answer import attempt_at_once
    from opmark.leaderboards.search.placer import PLACERS

    PLACERS.load(name)
    problem = load_problem(problem_file)
    try:
        found = attempt_at_once(problem, name, budget_s=budget, seed=seed, say=show_note)
    except SubmissionError as error:
        if as_json:
            facts = {"valid": False, "objective": problem.objective, "unit": problem.unit, "cost": None}
            bound = in_unit(known_bound(problem), problem.unit)
            show_json({**facts, "bound": bound, "solution": None, "reason": error.message})
        raise
    bound_ns = known_bound(problem)
    if found.evaluation.cost < bound_ns:
        show_warning(f"the lower bound stored with {problem.name} is wrong: this solution costs less")
    if output is not None:
        save_solution(found.solution, output)
    if as_json:
        show_json(_attempt_document(problem, found, bound_ns))
        return
    click.echo(
        f"{name} on {problem.name}: {format_cost(found.evaluation.schedule.value, problem.unit)}, "
        f"lower bound {format_cost(bound_ns, problem.unit)}, planned in {format_ns(found.planning_s * 1e9)}"
    )
    if found.evaluation.front:
        _show_front(found.evaluation.facts(problem)["front"])
        return
    placed = found.evaluation.placement.device.tolist()
    devices = enumerate(problem.cluster.devices)
    show_table(("device", "units"), [(device.name, str(placed.count(number))) for number, device in devices])


def _attempt_document(problem: "Problem", found: "Attempt", bound_ns: int) -> dict[str, Any]:
    from opmark.leaderboards.problem.placement import solution_content
    from opmark.leaderboards.problem.rules.objective import in_unit

    return {
        "valid": True,
        "objective": problem.objective,
        "unit": problem.unit,
        "cost": found.evaluation.value(problem.unit),
        "bound": in_unit(bound_ns, problem.unit),
        "planning_s": found.planning_s,
        **found.evaluation.facts(problem),
        "solution": solution_content(found.solution),
    }


@click.command(epilog="Example: opmark leaderboards simulate problem.json solution.json --draws 100")
@problem_argument
@click.argument("solution_file", metavar="SOLUTION", type=FILE)
@click.option("--profile", default="", help="The simulation rules. Default: the problem's own profile.")
@click.option("--trace", type=FILE, help="Write a Chrome trace to this file (Perfetto opens it).")
@click.option("--draws", type=click.IntRange(min=1), help="Also simulate this many draws of the predictors' errors.")
@json_option
def simulate(
    *, problem_file: Path, solution_file: Path, profile: str, trace: Path | None, draws: int | None, as_json: bool
) -> None:
    """Check SOLUTION, simulate it on PROBLEM, and print its cost."""
    from opmark.core.files import write_json
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.problem.rules.objective import format_cost
    from opmark.leaderboards.problem.rules.profile import profile_named
    from opmark.leaderboards.scoring.first_answer import without_compiling
    from opmark.leaderboards.scoring.robustness import drawn_factors, front_robustness, robustness
    from opmark.leaderboards.simulator.evaluation import evaluate
    from opmark.leaderboards.simulator.trace import chrome_trace

    problem = load_problem(problem_file)
    without_compiling(problem, show_note, simulations=1 + (draws or 0))
    rules = profile_named(profile or problem.profile)
    try:
        found = evaluate(problem, load_solution(solution_file, problem), rules)
    except PlacementError as error:
        raise PlacementError(error.message, where=error.where or str(solution_file), hint=error.hint) from error
    if trace is not None:
        write_json(trace, chrome_trace(problem, found, rules))
    drawn = None
    if draws and found.front:
        drawn = front_robustness(problem, found, factors=drawn_factors(problem, draws=draws), profile=rules)
    elif draws:
        drawn = robustness(found.posed(problem), found.placement, draws=draws, profile=rules)
    if as_json:
        show_json(_simulation_document(problem, found, rules, drawn))
        return
    click.echo(f"{problem.name}: {format_cost(found.schedule.value, problem.unit)} ({rules.name})")
    if drawn is not None:
        median, p95 = (format_cost(cost, problem.unit) for cost in (drawn.median, drawn.p95))
        click.echo(f"In {draws} draws of the predictors' errors: median {median}, 95 % within {p95}.")
    if found.front:
        _show_front(found.facts(problem)["front"])
        return
    cells = [(name, format_ns(busy_ns), format_bytes(peak)) for name, busy_ns, peak in _by_device(problem, found)]
    show_table(("device", "busy", "peak memory"), cells)


def _show_front(points: "Sequence[dict[str, Any]]") -> None:
    """One row per placement of a front, the cheapest first."""
    rows = [
        (", ".join(one["devices"]), f"{one['price_per_hour']:,.4g}", format_ns(one["time_ns"]))
        for one in sorted(points, key=lambda one: one["price_per_hour"])
    ]
    show_table(("devices", "per hour", "time"), rows)


def _by_device(problem: "Problem", found: "Evaluation") -> list[tuple[str, int, int]]:
    """Name, busy time (ns) and peak memory (bytes) of each device."""
    names = [device.name for device in problem.cluster.devices]
    return list(zip(names, found.busy_ns(len(names)), found.schedule.peak_bytes.tolist(), strict=True))


def _simulation_document(
    problem: "Problem", found: "Evaluation", rules: "PublishedModel", drawn: "Robustness | None"
) -> dict[str, Any]:
    from opmark.leaderboards.problem.rules.objective import in_unit

    facts = {
        "valid": True,
        "objective": problem.objective,
        "unit": problem.unit,
        "cost": found.value(problem.unit),
        "profile": rules.name,
        "latency_ns": found.schedule.latency_ns,
        "devices": [
            {"name": name, "busy_ns": busy_ns, "peak_bytes": peak} for name, busy_ns, peak in _by_device(problem, found)
        ],
    }
    if rules.model is None:
        facts |= found.facts(problem)
    if drawn is not None:
        facts |= {"median": in_unit(drawn.median, problem.unit), "p95": in_unit(drawn.p95, problem.unit)}
    return facts


@click.command(epilog="Example: opmark leaderboards bound problem.json --solver 30s")
@problem_argument
@click.option("--solver", type=DURATION, help="Also let an integer program prove a bound, for this long.")
@json_option
def bound(problem_file: Path, solver: float | None, as_json: bool) -> None:
    """Print lower bounds on the cost of placements of PROBLEM.

    For the objective latency, this includes the response-time guarantee: an upper bound on the latency of list
    scheduling on the best single device.
    """
    from opmark.leaderboards.bounds.bounds import bounds
    from opmark.leaderboards.bounds.response_time import known_guarantee_ns
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.scoring.first_answer import without_compiling

    problem = load_problem(problem_file)
    without_compiling(problem, show_note, simulations=SOLVER_SIMULATIONS if solver else 1)
    found = bounds(problem, solver_s=solver or 0.0)
    best = max(found.values(), default=0)
    guarantee = known_guarantee_ns(problem)
    if as_json:
        show_json(
            {
                "objective": problem.objective,
                "unit": problem.unit,
                "bound": in_unit(best, problem.unit),
                "bounds": {name: in_unit(value, problem.unit) for name, value in found.items()},
                "guarantee": None if guarantee is None else in_unit(guarantee, problem.unit),
            }
        )
        return
    rows = [(name.replace("_", " "), format_cost(value, problem.unit)) for name, value in found.items()]
    show_table(("bound", problem.objective), rows)
    click.echo(f"No placement of {problem.name} is better than {format_cost(best, problem.unit)}.")
    if guarantee is not None:
        longest = format_cost(guarantee, problem.unit)
        click.echo(f"List scheduling on the best single device never takes longer than {longest}.")


@click.command(name="check-trace", epilog="Example: opmark leaderboards check-trace problem.json trace.json")
@problem_argument
@click.argument("trace_file", metavar="TRACE", type=FILE)
@click.option("--solution", "solution_file", type=FILE, help="A solution whose simulation must give the same trace.")
@json_option
def check_trace(*, problem_file: Path, trace_file: Path, solution_file: Path | None, as_json: bool) -> None:
    """Check that TRACE is a possible schedule of PROBLEM.

    The check covers durations, slots, ports, routes, the arrival of every input before its use, and the stated cost.
    Nothing is simulated for it. The exit code is 3 where the trace is not valid.
    """
    from opmark.leaderboards.problem.files import load_problem
    from opmark.leaderboards.problem.placement import load_solution
    from opmark.leaderboards.problem.rules.objective import format_cost, in_unit
    from opmark.leaderboards.scoring.first_answer import without_compiling
    from opmark.leaderboards.simulator.trace_check import check_trace_file

    problem = load_problem(problem_file)
    without_compiling(problem, show_note)
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
