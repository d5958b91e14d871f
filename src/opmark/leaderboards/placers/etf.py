"""ETF, Earliest Task First, with memory: m-ETF.

Hwang, Chow, Anger, Lee, "Scheduling precedence graphs in systems with interprocessor communication times", SIAM J.
Comput. 18(2), 1989, section 3: again and again the ready task and the processor on which it can start first. Jeon et
al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.2, adds that a device without room
takes no more. Ties go to the earlier end, then to the higher upward rank.
"""

from opmark.leaderboards.placers.heft import cheapest, mean_upward_rank
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.lists.list_schedule import BuiltSchedule, build_earliest_first
from opmark.leaderboards.search.placer import Placer


def etf_schedule(problem: Problem, *, contention: bool = True) -> tuple[BuiltSchedule, Integers]:
    """The schedule ETF builds and the ranks that break its ties; without `contention` links are infinitely wide."""
    rank = mean_upward_rank(problem)
    return build_earliest_first(problem, rank, contention=contention), rank


class Etf(Placer):
    """List scheduling by earliest start: devices are kept busy, whatever they are worth."""

    summary = "earliest start of any ready unit on any device with room (Hwang 1989; Baechi's m-ETF)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """ETF's schedule."""
        del budget_s, seed
        schedule, rank = etf_schedule(problem)
        return solution_of(problem, cheapest(problem, schedule.placement(rank)), placer="etf")


PLACER = Etf()
