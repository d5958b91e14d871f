"""The linearised dynamic program of dnn-partitioning (DPL): contiguous pieces of one topological order.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.2: with
an edge from each node to the next of a depth-first order, only the prefixes of the order are ideals.
"""

import time
from functools import cache

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.max_load_split import Splitter
from opmark.leaderboards.search.cuts.repair import fitting, quick_split
from opmark.leaderboards.search.placer import Placer

BUDGET_SHARE = 0.8


class DnnPartitioningDpLinear(Placer):
    """Optimal along the order; other splits it cannot see."""

    summary = "least maximum load along a depth-first order, by dynamic programming (Tarnawski 2020)"
    paper = Placer.cites(
        "Tarnawski et al.: Efficient algorithms for device placement of DNN graph operators, NeurIPS",
        2020,
        link="https://arxiv.org/abs/2006.16423",
        code="https://github.com/msr-fiddle/dnn-partitioning",
    )

    def prepare(self) -> None:
        """Compile the program."""
        _compile()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the best split along two orders; stages of balanced compute if the budget ends first.

        Memory counts weights at first, and everything that a piece holds if that did not fit. Raises `PlacementError`
        if no split fits.
        """
        del seed
        deadline = time.monotonic() + budget_s * BUDGET_SHARE
        blocks = blocks_of(problem)
        quick = quick_split(problem, blocks)
        for weights_only in (problem.memory_mode != "sum", False):
            split = Splitter(problem, blocks, weights_only=weights_only).along_orders(deadline)
            placement = fitting(problem, blocks, None if split is None else split.device)
            if placement is not None:
                return solution_of(problem, placement, placer="dnn-partitioning-dp-linear")
        if quick is not None:
            return solution_of(problem, quick, placer="dnn-partitioning-dp-linear")
        raise PlacementError("no contiguous split along the order fits into memory")


PLACER = DnnPartitioningDpLinear()


@cache
def _compile() -> None:
    PLACER.place(smallest_problem(), budget_s=60.0, seed=0)
