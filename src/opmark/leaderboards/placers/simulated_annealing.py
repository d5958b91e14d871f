"""Simulated annealing from the best single device, one class at a time.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983; restarted from its best with
twice as many moves each time.
"""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.guided_search import GuidedSearch, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import starting_rows

# Of the cost: at first one move in three that costs this much more is taken, in the end hardly any.
HEAT = (0.05, 0.0003)
FIRST_PER_GROUP, LAST_PER_GROUP = 40, 1_200
BUDGET_SHARE = 0.95


class SimulatedAnnealing(Placer):
    """Anytime; knows nothing of critical paths, regions or list schedules."""

    summary = "single moves of devices and priorities, accepted by temperature (Kirkpatrick 1983)"

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement seen; the same for a seed where the budget does not cut the search short."""
        incumbent = Incumbent(problem, "simulated-annealing", budget_s * BUDGET_SHARE)
        search = GuidedSearch(problem, incumbent, seed)
        best = min((search.state(row) for row in starting_rows(problem, search.groups)), key=lambda state: state.energy)
        search.report(best)
        begun_s, length = incumbent.left_s, FIRST_PER_GROUP * (search.groups.count + 10)
        last = LAST_PER_GROUP * (search.groups.count + 10)
        while search.movable and incumbent.left_s > 0 and search.evaluations < last:
            rate = search.evaluations / max(1e-9, begun_s - incumbent.left_s)
            if search.evaluations >= length // 2:
                length = min(length, max(64, int(rate * incumbent.left_s)))
            best = search.anneal(best, length, HEAT, guided=False, regions=False)
            length *= 2
        return incumbent.solution()


PLACER = SimulatedAnnealing()
