"""The cheapest single device by the hour that holds the network and meets the goal."""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt


class CheapestSingle(Placer):
    """Types by price; of equal prices, the faster one on the whole graph."""

    summary = "everything on the cheapest single device that meets the goal"
    rents = True

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the placement on that device. Raises `PlacementError` where no single device will do."""
        hunt = FleetHunt(problem, "cheapest-single", budget_s)
        return hunt.first_single(lambda fleet: (hunt.pool.price_per_hour(fleet), hunt.pool.work(fleet)), seed=seed)


PLACER = CheapestSingle()
