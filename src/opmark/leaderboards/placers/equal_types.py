"""The best fleet of equal devices: every type, every count, placed and searched like any other fleet."""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import warm_up
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt
from opmark.leaderboards.search.renting.front_hunt import hunt_front
from opmark.leaderboards.search.renting.halving import hunt_by_halving


class EqualTypes(Placer):
    """The row that unequal types must beat; it has the same time and the same search."""

    summary = "the best count of each device type alone, then the search on the best of them"
    rents = True

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best placement on devices of one type. Raises `PlacementError` where none keeps the limits."""
        hunt = FleetHunt(problem, "equal-types", budget_s)
        explore = hunt_front if problem.fronted else hunt_by_halving
        explore(hunt, [fleet for fleet in hunt.pool.fleets() if hunt.pool.equal(fleet)], seed=seed)
        return hunt.solution()


PLACER = EqualTypes()
