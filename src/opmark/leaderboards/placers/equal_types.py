"""The best fleet of equal devices: every type, every count, placed and searched like any other fleet."""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import warm_up
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.equal_hunt import hunt_equal
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt


class EqualTypes(Placer):
    """The row that unequal types must beat. `opmark` begins with the same search of the same length."""

    summary = "the best count of each device type alone, then the search on the best of them"
    rents = True

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best placement on devices of one type. Raises `PlacementError` where none keeps the limits."""
        hunt = FleetHunt(problem, "equal-types", budget_s)
        hunt_equal(hunt, budget_s=budget_s, seed=seed)
        return hunt.solution()


PLACER = EqualTypes()
