"""A bound by constraint programming with OR-tools (extra `solvers`): where and when everything runs.

Units and transfers are optional intervals on devices and link ports; for throughput their loads alone count. The solver
starts from a known answer and proves that nothing is better, or how much better anything can be. Perron, Didier, Gay,
"The CP-SAT-LP solver", CP 2023.
"""

import math
import time
from typing import Any

from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.relaxation import EVENT_PROFILES, has_splits, is_latency, profile_of
from opmark.leaderboards.bounds.solver_bound import window_rows
from opmark.leaderboards.bounds.windows import windows_of
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.simulator.several_passes import passes_of
from opmark.leaderboards.simulator.simulate import fits, simulate

# The known answer lasts so many steps of the grid: more of them prove tighter bounds, more slowly.
STEPS = 60_000
# (tensor, source, destination) combinations beyond which the program would only be built.
PASSAGES_AT_MOST = 60_000
# The share of the time in which the program must be written down, and that in which rows for it are looked for.
BUILD_SHARE, ROWS_SHARE = 0.3, 0.15
# The share of the time in which the solver minimises; then it decides whether anything is better than these shares.
MINIMISE_SHARE = 0.4
GOALS = (0.049, 0.019, 0.0)


def interval_bound(problem: Problem, known: Placement, *, seconds: float, seed: int = 0, least: int = 0) -> int | None:
    """A proven lower bound in ns, at most the cost of the valid placement `known`; `least` is proved already.

    None where the program does not apply, is too large, or proves nothing in time, and without OR-tools.
    """
    if not _applies(problem) or seconds <= 0:
        return None
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    schedule = simulate(problem, known)
    if not fits(problem, schedule):
        return None
    grid_ns, limit_ns = grid_of(problem, schedule.cost_ns), limit_of(problem, schedule.cost_ns)
    begun = time.monotonic()
    model = _program(problem, cp_model, grid_ns, limit_ns, ROWS_SHARE * seconds)
    if not model.build(begun + BUILD_SHARE * seconds):
        return None
    model.hint(known)
    found = _proved(model, cp_model, begun + MINIMISE_SHARE * seconds - time.monotonic(), seed)
    found = None if found is None else min(limit_ns, found)
    for goal in GOALS:
        wanted, left_s = math.ceil(limit_ns / (1 + goal)), begun + seconds - time.monotonic()
        if wanted <= max(least, found or 0):
            continue
        if not is_impossible(problem, wanted, grid_ns=grid_ns, seconds=left_s, seed=seed):
            break
        found = wanted
    return found


def is_impossible(problem: Problem, below_ns: int, *, grid_ns: int, seconds: float, seed: int = 1) -> bool | None:
    """True if no solution of the program costs less than `below_ns`, False if one does, None if time was too short.

    This decides again what `interval_bound` proved on that grid, as another task: the solver has nothing to minimise.
    Raises `ImportError` without OR-tools.
    """
    from ortools.sat.python import cp_model

    if below_ns < grid_ns:
        return True
    if seconds <= 0:
        return None
    begun = time.monotonic()
    model = _program(problem, cp_model, grid_ns, below_ns - 1, ROWS_SHARE * seconds)
    if not model.build(begun + BUILD_SHARE * seconds):
        return None
    model.model.clear_objective()
    status = _solver(cp_model, max(0.0, seconds - (time.monotonic() - begun)), seed).solve(model.model)
    return {cp_model.INFEASIBLE: True, cp_model.OPTIMAL: False, cp_model.FEASIBLE: False}.get(status)


def grid_of(problem: Problem, cost_ns: int) -> int:
    """The grid, in ns, for a problem with a known answer of that cost; loads need none."""
    return max(1, cost_ns // STEPS) if problem.objective == "latency" else 1


def limit_of(problem: Problem, cost_ns: int) -> int:
    """The least of a valid answer's cost and the frozen best known one: bounds above it are not looked for."""
    return cost_ns if problem.reference is None else min(cost_ns, problem.reference.best_known_ns)


def _applies(problem: Problem) -> bool:
    arrays = problem.arrays
    latency = is_latency(problem) and problem.objective == "latency"
    load = profile_of(problem) in EVENT_PROFILES and problem.objective == "throughput"
    if not (latency or load) or profile_named(problem.profile).model is not None:
        return False
    if problem.replication or has_splits(problem) or passes_of(problem) is not None:
        return False
    return len(arrays.tensor_bytes) * arrays.devices * (arrays.devices - 1) <= PASSAGES_AT_MOST


def _program(problem: Problem, cp_model: Any, grid_ns: int, limit_ns: int, rows_s: float) -> IntervalModel:
    latency = problem.objective == "latency"
    return IntervalModel(
        problem,
        cp_model,
        contention=profile_named(problem.profile).contention,
        grid_ns=grid_ns,
        limit_ns=limit_ns,
        windows=windows_of(problem, limit_ns=limit_ns) if latency else None,
        rows=window_rows(problem, limit_ns, seconds=rows_s) if latency else (),
    )


def _solver(cp_model: Any, seconds: float, seed: int) -> Any:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = seconds
    return solver


def _proved(model: IntervalModel, cp_model: Any, seconds: float, seed: int) -> int | None:
    """The ns that the solver proves, None where it proves nothing."""
    if seconds <= 0:
        return None
    solver = _solver(cp_model, seconds, seed)
    status = solver.solve(model.model)
    if status == cp_model.INFEASIBLE:  # nothing is below the limit
        return (model.horizon + 1) * model.grid_ns
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN}:
        return None
    return max(0, int(solver.best_objective_bound + 0.5)) * model.grid_ns
