"""Simulated annealing from the best single device, one class at a time.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983; restarted from its best with
twice as many moves each time.
"""

from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.annealing import Annealer, Cooling, warm_up
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import starting_rows
from opmark.leaderboards.search.states import Search

# At first one move in three that costs 5 % more is taken, in the end hardly any.
COOLING = Cooling(temperature_first=0.05, temperature_last=0.0003, regions=False, guided=False)
FIRST_PER_GROUP, LAST_PER_GROUP = 40, 1_200
BUDGET_SHARE = 0.95


class SimulatedAnnealing(Placer):
    """Anytime; knows nothing of critical paths, regions or list schedules."""

    summary = "single moves of devices and priorities, accepted by temperature (Kirkpatrick 1983)"
    paper = Placer.cites(
        "Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220",
        1983,
        link="https://doi.org/10.1126/science.220.4598.671",
    )

    def prepare(self) -> None:
        """Compile the search."""
        warm_up()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The cheapest placement seen; the same for a seed where the budget does not cut the search short."""
        incumbent = Incumbent(problem, "simulated-annealing", budget_s * BUDGET_SHARE)
        search = Search(problem, incumbent)
        best = min(search.starts(starting_rows(problem, search.groups)), key=lambda state: state.energy)
        search.report(best)
        annealer = Annealer(search, seed)
        size = search.groups.count + 10
        length = FIRST_PER_GROUP * size
        while search.movable and incumbent.left_s > 0 and annealer.steps < LAST_PER_GROUP * size:
            if annealer.steps_per_s:
                length = min(length, max(64, int(annealer.steps_per_s * incumbent.left_s)))
            best = annealer.run(best, length, COOLING)
            length *= 2
        return incumbent.solution()


PLACER = SimulatedAnnealing()
