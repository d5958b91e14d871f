"""The dynamic program of dnn-partitioning (DP) over all ideals: the contiguous split of least maximum load.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.1. The
answer along one order (section 5.1.2) bounds it, so that only parts that could beat that answer grow.
"""

import time
from functools import cache

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import every_ideal
from opmark.leaderboards.search.cuts.max_load_split import UNBOUNDED_NS, Splitter
from opmark.leaderboards.search.cuts.repair import fitting, quick_split
from opmark.leaderboards.search.placer import Placer

# The most states (ideals times numbers of used devices) in memory: three tables of 8 bytes each.
STATES_AT_MOST = 8_000_000
BUDGET_SHARE = 0.8


class DnnPartitioningDp(Placer):
    """Optimal if all ideals can be listed; else the answer along one order."""

    summary = "optimal contiguous split by maximum load over all ideals (Tarnawski 2020)"
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
        """Return the best split; the answer along one order if the budget ends first.

        Memory counts weights at first, and everything that a piece holds if that did not fit. Raises `PlacementError`
        if no split fits.
        """
        del seed
        deadline = time.monotonic() + budget_s * BUDGET_SHARE
        blocks = blocks_of(problem)
        quick = quick_split(problem, blocks)
        ideals = None
        for weights_only in (problem.memory_mode != "sum", False):
            splitter = Splitter(problem, blocks, weights_only=weights_only)
            split = splitter.along_orders(deadline)
            if ideals is None and time.monotonic() < deadline:
                ideals = every_ideal(blocks, at_most=STATES_AT_MOST // splitter.states, deadline=deadline)
            if ideals is not None:
                bound_ns = UNBOUNDED_NS if split is None else split.load_ns
                split = splitter.solve(ideals, bound_ns, deadline) or split
            placement = fitting(problem, blocks, None if split is None else split.device)
            if placement is not None:
                return solution_of(problem, placement, placer="dnn-partitioning-dp")
        if quick is not None:
            return solution_of(problem, quick, placer="dnn-partitioning-dp")
        raise PlacementError("no contiguous split fits into memory")


PLACER = DnnPartitioningDp()


@cache
def _compile() -> None:
    PLACER.place(smallest_problem(), budget_s=60.0, seed=0)
