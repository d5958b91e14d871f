"""PEFT, Predict Earliest Finish Time.

Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE TPDS 25(3),
2014. Line numbers are those of the paper's algorithm 1.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.list_answer import list_answer
from opmark.leaderboards.search.lists.list_schedule import ListSchedule, schedule_by_earliest_finish
from opmark.leaderboards.search.lists.ranks import optimistic_cost_table, ready_order
from opmark.leaderboards.search.placer import Placer


def peft_schedule(problem: Problem, *, contention: bool = True) -> tuple[ListSchedule, Integers]:
    """PEFT's schedule and its optimistic cost table (U×D, ns); without `contention` exactly the paper's algorithm."""
    # Line 1: the optimistic cost table (OCT), and as rank of a task its mean over the processors.
    oct_ns = optimistic_cost_table(problem)
    able = problem.arrays.run_ns >= 0
    rank = np.where(able, oct_ns, 0).sum(axis=1) / able.sum(axis=1)
    # Lines 2 to 4 and 10: of the ready tasks, the one of highest rank comes next.
    order = ready_order(problem, rank)
    # Lines 5 to 9: assign it to the processor with the least earliest finish time (EFT, by insertion) plus OCT.
    return schedule_by_earliest_finish(problem, order, contention=contention, lookahead_ns=oct_ns), oct_ns


class Peft(Placer):
    """List scheduling that looks ahead to the exit."""

    summary = "optimistic cost table, least finish plus what must follow (Arabnejad 2014)"
    paper = Placer.cites(
        "Arabnejad, Barbosa: List scheduling algorithm for heterogeneous systems by an optimistic cost table, "
        "IEEE TPDS 25(3)",
        2014,
        link="https://doi.org/10.1109/TPDS.2013.57",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return PEFT's schedule."""
        del budget_s, seed
        schedule, _ = peft_schedule(problem)
        return list_answer(problem, schedule, None, placer="peft")


PLACER = Peft()
