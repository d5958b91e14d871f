"""HEFT, Heterogeneous Earliest Finish Time.

Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS
13(3), 2002, section 4.2. Step numbers are those of the paper's algorithm. In the paper links have no queues;
here they have, a tensor travels once to each device, and outputs return to the host.
"""

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.list_answer import list_answer
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_finish
from opmark.leaderboards.search.lists.ranks import falling_order, upward_rank
from opmark.leaderboards.search.placer import Placer


def heft_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """HEFT's schedule and the upward ranks (ns); without `contention` exactly the paper's algorithm."""
    # Steps 1, 2: rank all tasks upward, at mean computation and communication costs.
    rank = upward_rank(problem)
    # Step 3: sort the tasks by nonincreasing rank.
    scheduling_list = falling_order(problem, rank)
    # Steps 4 to 9: assign each task in turn to the processor with the earliest finish time, by insertion.
    return schedule_by_earliest_finish(problem, scheduling_list, contention=contention), rank


class Heft(Placer):
    """List scheduling by upward rank; the answer keeps HEFT's own order if that is cheaper."""

    summary = "upward rank, earliest finish with insertion (Topcuoglu 2002), link queues estimated"
    paper = Placer.cites(
        "Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing, "
        "IEEE TPDS 13(3)",
        2002,
        link="https://doi.org/10.1109/71.993206",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return HEFT's schedule."""
        del budget_s, seed
        schedule, rank = heft_schedule(problem)
        return list_answer(problem, schedule, rank, placer="heft")


PLACER = Heft()
