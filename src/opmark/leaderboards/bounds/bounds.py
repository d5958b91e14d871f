"""Lower bounds on the cost of a problem, which no placement can beat."""

import time

from opmark.leaderboards.bounds.fleet_bound import proved_bound
from opmark.leaderboards.bounds.interval_bound import limit_of
from opmark.leaderboards.bounds.relaxation import RELAXATIONS
from opmark.leaderboards.bounds.solver_bound import solver_bound
from opmark.leaderboards.bounds.stages.stages_bound import stages_bound
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import fits, simulate

# A linear program of this size is solved in a few hundredths of a second.
PROGRAM_VARIABLES_AT_MOST = 600
# The shares of the solvers' time that the integer program and the programming over stages get beside constraint
# programming; what they do not use is left to it.
PROGRAM_SHARE, STAGES_SHARE = 0.3, 0.5


def lower_bound(problem: Problem) -> int:
    """The largest of all bounds below, in whole cost steps."""
    return max(bounds(problem).values(), default=0)


def known_bound(problem: Problem) -> int:
    """The bound that is stored with the problem's reference, without one `lower_bound`."""
    return problem.reference.bound_ns if problem.reference else lower_bound(problem)


def cheap_lower_bound(problem: Problem) -> int:
    """The largest bound that takes almost no time: stored ones, and every relaxation except large linear programs."""
    groups = groups_of(problem)
    found: list[int] = [0, *(problem.reference.bounds.values() if problem.reference else ())]
    small = groups.count * problem.arrays.devices <= PROGRAM_VARIABLES_AT_MOST
    names = [name for name in RELAXATIONS.names() if small or name != "area"]
    found += [RELAXATIONS.load(name).bound(problem, groups) or 0 for name in names]
    return max(found)


def bounds(problem: Problem, *, solver_s: float = 0.0, known: Placement | None = None) -> dict[str, int]:
    """Every bound that applies to the problem, by name, in whole cost steps.

    A bound that is stored with the problem, such as a solver's, counts too. The solvers look for better ones for
    `solver_s` seconds; most need a `known` valid answer to start from.
    """
    groups = groups_of(problem)
    found = dict(problem.reference.bounds) if problem.reference else {}
    for name in RELAXATIONS.names():
        value = RELAXATIONS.load(name).bound(problem, groups)
        if value is not None:
            found[name.replace("-", "_")] = value
    if solver_s > 0:
        for name, proved in _proved(problem, solver_s, known).items():
            if proved is not None:
                found[name] = max(proved, found.get(name, 0))
    return found


def _proved(problem: Problem, seconds: float, known: Placement | None) -> dict[str, int | None]:
    """The bounds of all solvers that apply; the later ones are left out once a bound meets the known answer."""
    deadline = time.monotonic() + seconds
    limit = _limit(problem, known)
    found: dict[str, int | None] = {}
    if limit is not None:
        found["stages"] = stages_bound(problem, limit, seconds=STAGES_SHARE * seconds)
    if found.get("stages") is None:
        found["solver"] = solver_bound(problem, seconds=PROGRAM_SHARE * seconds, limit_ns=limit)
    if known is not None and limit not in found.values():
        least = max([value for value in found.values() if value is not None], default=0)
        found["intervals"] = proved_bound(problem, known, seconds=deadline - time.monotonic(), least=least)
    return found


def _limit(problem: Problem, known: Placement | None) -> int | None:
    """The best cost that is known; None without a valid answer, and for other objectives."""
    if known is None or problem.objective not in {"latency", "throughput"}:
        return None
    schedule = simulate(problem, known)
    return limit_of(problem, schedule.cost_ns) if fits(problem, schedule) else None
