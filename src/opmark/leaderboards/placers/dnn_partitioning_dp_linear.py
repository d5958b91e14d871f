"""The linearised dynamic program of dnn-partitioning: contiguous pieces of one topological order.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.2: an
edge from each node to the next of a depth-first order leaves only the order's prefixes as ideals.
"""

import time
from functools import cache

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem, smallest_problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.ideals import depth_first_orders, prefixes
from opmark.leaderboards.search.cuts.max_load_split import Split, Splitter
from opmark.leaderboards.search.cuts.repair import fitting, quick_split
from opmark.leaderboards.search.placer import Placer

# No load can be larger than this.
UNBOUNDED_NS = 2**62
BUDGET_SHARE = 0.8


@cache
def compile_program() -> None:
    """Have numba compile the dynamic program, which both placers share."""
    PLACER.place(smallest_problem(), budget_s=60.0, seed=0)


def best_prefix_split(splitter: Splitter, blocks: Blocks, deadline: float) -> Split | None:
    """The best split along either depth-first order; None where `deadline` (as `time.monotonic`) came first."""
    found = [splitter.solve(prefixes(blocks, order), UNBOUNDED_NS, deadline) for order in depth_first_orders(blocks)]
    return min((split for split in found if split is not None), key=lambda split: split.load_ns, default=None)


class DnnPartitioningDpLinear(Placer):
    """Exact along the order; the order decides what it can see."""

    summary = "least maximum load along a depth-first order, by dynamic programming (Tarnawski 2020)"

    def prepare(self) -> None:
        """Compile the program."""
        compile_program()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Counts weights against memory first, everything a piece holds if that did not fit.

        Where the budget ends first, stages of balanced compute. Raises `PlacementError` where no split fits.
        """
        del seed
        deadline = time.monotonic() + budget_s * BUDGET_SHARE
        blocks = blocks_of(problem)
        quick = quick_split(problem, blocks)
        for roomy in (problem.memory_mode != "sum", False):
            split = best_prefix_split(Splitter(problem, blocks, roomy=roomy), blocks, deadline)
            placement = fitting(problem, blocks, None if split is None else split.device)
            if placement is not None:
                return solution_of(problem, placement, placer="dnn-partitioning-dp-linear")
        if quick is not None:
            return solution_of(problem, quick, placer="dnn-partitioning-dp-linear")
        raise PlacementError("no contiguous split along the order fits into memory")


PLACER = DnnPartitioningDpLinear()
