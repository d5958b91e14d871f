"""A bound by constraint programming with OR-tools (extra `solvers`): where and when everything runs.

Units and transfers are optional intervals on devices and link ports. The solver starts from a known answer and proves
that nothing is better, or how much better anything can be. Perron, Didier, Gay, "The CP-SAT-LP solver", CP 2023.
"""

import time
from typing import Any

from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.relaxation import is_latency
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
# The share of the time in which the program must be written down.
BUILD_SHARE = 0.3


def interval_bound(problem: Problem, known: Placement, *, seconds: float, seed: int = 0) -> int | None:
    """A proven lower bound in ns, at most the cost of the valid placement `known`.

    None where the program does not apply, is too large, or proves nothing in time, and without OR-tools.
    """
    rules = profile_named(problem.profile)
    arrays = problem.arrays
    applies = is_latency(problem) and rules.model is None and problem.objective == "latency"
    if not applies or problem.replication or passes_of(problem) is not None or seconds <= 0:
        return None
    if len(arrays.tensor_bytes) * arrays.devices * (arrays.devices - 1) > PASSAGES_AT_MOST:
        return None
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    schedule = simulate(problem, known)
    if not fits(problem, schedule):
        return None
    limit_ns = schedule.cost_ns
    grid_ns = max(1, limit_ns // STEPS)
    begun = time.monotonic()
    model = IntervalModel(
        problem,
        cp_model,
        contention=rules.contention,
        grid_ns=grid_ns,
        limit_ns=limit_ns,
        windows=windows_of(problem),
    )
    if not model.build(begun + BUILD_SHARE * seconds):
        return None
    model.hint(known)
    steps = _proved(model, cp_model, seconds - (time.monotonic() - begun), seed)
    return None if steps is None else min(limit_ns, steps * grid_ns)


def _proved(model: IntervalModel, cp_model: Any, seconds: float, seed: int) -> int | None:
    """The steps that the solver proves, None where it proves nothing."""
    if seconds <= 0:
        return None
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model.model)
    if status not in {cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN}:
        return None
    return max(0, int(solver.best_objective_bound + 0.5))
