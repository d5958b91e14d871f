"""Lower bounds on the cost of a problem: what no placement can beat."""

from opmark.leaderboards.groups import groups_of
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.relaxation import RELAXATIONS
from opmark.leaderboards.solver_bound import solver_bound


def lower_bound(problem: Problem) -> int:
    """The largest of all bounds below, in whole cost steps."""
    return max(bounds(problem).values(), default=0)


def bounds(problem: Problem, *, solver_s: float = 0.0) -> dict[str, int]:
    """Every bound that says something about the problem, by name, in whole cost steps.

    A bound that was stored with the problem, such as a solver's, counts too; `solver_s` seconds look for a better one.
    """
    groups = groups_of(problem)
    found = dict(problem.reference.bounds) if problem.reference else {}
    for name in RELAXATIONS.names():
        value = RELAXATIONS.load(name).bound(problem, groups)
        if value is not None:
            found[name.replace("-", "_")] = value
    proved = solver_bound(problem, seconds=solver_s) if solver_s > 0 else None
    if proved is not None:
        found["solver"] = max(proved, found.get("solver", 0))
    return found
