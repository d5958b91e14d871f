"""Lower bounds on the cost of a problem: what no placement can beat."""

from opmark.leaderboards.groups import groups_of
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.relaxation import RELAXATIONS


def lower_bound(problem: Problem) -> int:
    """The largest of all bounds below, in whole cost steps."""
    return max(bounds(problem).values(), default=0)


def bounds(problem: Problem) -> dict[str, int]:
    """Every bound that says something about the problem, by name, in whole cost steps.

    A bound that was stored with the problem, such as a solver's, counts too.
    """
    groups = groups_of(problem)
    found = dict(problem.reference.bounds) if problem.reference else {}
    for name in RELAXATIONS.names():
        value = RELAXATIONS.load(name).bound(problem, groups)
        if value is not None:
            found[name.replace("-", "_")] = value
    return found
