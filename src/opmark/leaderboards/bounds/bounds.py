"""Lower bounds on the cost of a problem, which no placement can beat."""

from opmark.leaderboards.bounds.fleet_bound import proved_bound
from opmark.leaderboards.bounds.relaxation import RELAXATIONS
from opmark.leaderboards.bounds.solver_bound import solver_bound
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of

# A linear program of this size is solved in a few hundredths of a second.
PROGRAM_VARIABLES_AT_MOST = 600
# The share of the solvers' time that the integer program gets, where constraint programming applies too.
PROGRAM_SHARE = 0.2


def lower_bound(problem: Problem) -> int:
    """The largest of all bounds below, in whole cost steps."""
    return max(bounds(problem).values(), default=0)


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
    `solver_s` seconds; constraint programming needs a `known` valid answer to start from.
    """
    groups = groups_of(problem)
    found = dict(problem.reference.bounds) if problem.reference else {}
    for name in RELAXATIONS.names():
        value = RELAXATIONS.load(name).bound(problem, groups)
        if value is not None:
            found[name.replace("-", "_")] = value
    if solver_s > 0:
        proved = {
            "solver": solver_bound(problem, seconds=solver_s * PROGRAM_SHARE),
            "intervals": None
            if known is None
            else proved_bound(problem, known, seconds=solver_s * (1 - PROGRAM_SHARE)),
        }
        found |= {name: max(value, found.get(name, 0)) for name, value in proved.items() if value is not None}
    return found
