"""ETF, Earliest Task First, with memory: m-ETF.

Hwang, Chow, Anger, Lee, "Scheduling precedence graphs in systems with interprocessor communication times", SIAM J.
Comput. 18(2), 1989, section 3. Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020,
section 3.2, adds memory: a device without room takes no further unit.
"""

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.list_answer import list_answer
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_start
from opmark.leaderboards.search.lists.ranks import upward_rank
from opmark.leaderboards.search.placer import Placer


def etf_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """ETF's schedule and the upward ranks (ns) that break ties; without `contention` exactly the paper's algorithm."""
    rank = upward_rank(problem)
    # Repeat: of all ready tasks and all processors with room, assign the pair with the earliest start time.
    return schedule_by_earliest_start(problem, rank, contention=contention), rank


class Etf(Placer):
    """List scheduling by earliest start: it keeps devices busy, slow ones too."""

    summary = "earliest start of any ready unit on any device with room (Hwang 1989; Baechi's m-ETF)"
    paper = Placer.cites(
        "Hwang, Chow, Anger, Lee: Scheduling precedence graphs in systems with interprocessor communication times, "
        "SIAM J. Comput. 18(2)",
        1989,
        link="https://doi.org/10.1137/0218016",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return ETF's schedule."""
        del budget_s, seed
        schedule, rank = etf_schedule(problem)
        return list_answer(problem, schedule, rank, placer="etf")


PLACER = Etf()
