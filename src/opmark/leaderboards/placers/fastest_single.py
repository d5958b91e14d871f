"""The fastest single device that holds the network, whatever it costs within the goal."""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.renting.fleet_hunt import FleetHunt


class FastestSingle(Placer):
    """Types by their time on the whole graph; the first that fits into memory and meets the goal is taken."""

    summary = "everything on the fastest single device that meets the goal"
    rents = True

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the placement on that device. Raises `PlacementError` where no single device will do."""
        hunt = FleetHunt(problem, "fastest-single", budget_s)
        return hunt.first_single(lambda fleet: (hunt.pool.work(fleet), hunt.pool.price_per_hour(fleet)), seed=seed)


PLACER = FastestSingle()
