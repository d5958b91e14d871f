"""The linearised dynamic program of dnn-partitioning: contiguous pieces of one topological order.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.2: an
edge from each node to the next of a depth-first order leaves only the order's prefixes as ideals.
"""

import time

from opmark.core.errors import PlacementError
from opmark.leaderboards.blocks import Blocks, blocks_of
from opmark.leaderboards.contiguous_split import Split, Splitter
from opmark.leaderboards.integers import Integers
from opmark.leaderboards.lattice import depth_first_orders, prefixes
from opmark.leaderboards.pipeline_stages import balanced_stages, device_rows
from opmark.leaderboards.placement import Placement, Solution, solution_of
from opmark.leaderboards.placer import Placer
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.simulator import fits, simulate

# No load can be larger than this.
UNBOUNDED_NS = 2**62
BUDGET_SHARE = 0.8


def best_prefix_split(splitter: Splitter, blocks: Blocks, deadline: float) -> Split | None:
    """The best split along either depth-first order; None where `deadline` (as `time.monotonic`) came first."""
    found = [splitter.solve(prefixes(blocks, order), UNBOUNDED_NS, deadline) for order in depth_first_orders(blocks)]
    return min((split for split in found if split is not None), key=lambda split: split.load_ns, default=None)


def fitting(problem: Problem, blocks: Blocks, device_of_block: Integers | None) -> Placement | None:
    """The placement of every unit with its block, if it runs and fits into memory."""
    if device_of_block is None:
        return None
    placement = Placement(device=device_of_block[blocks.of_unit])
    try:
        return placement if fits(problem, simulate(problem, placement)) else None
    except PlacementError:
        return None


def quick_split(problem: Problem, blocks: Blocks) -> Placement | None:
    """Stages of balanced compute on as many devices as fit: what is at hand when there is no time for more."""
    row = device_rows(problem, blocks)
    for count in range(len(row), 0, -1):
        placement = fitting(problem, blocks, balanced_stages(blocks, row[:count]))
        if placement is not None:
            return placement
    return None


class DnnPartitioningDpLinear(Placer):
    """Exact along the order; the order decides what it can see."""

    summary = "least maximum load along a depth-first order, by dynamic programming (Tarnawski 2020)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Counts weights against memory first, everything a piece holds if that did not fit.

        Where the budget ends first, stages of balanced compute. Raises `PlacementError` where no split fits.
        """
        del seed
        deadline = time.monotonic() + budget_s * BUDGET_SHARE
        blocks = blocks_of(problem)
        for roomy in (problem.memory_mode != "sum", False):
            split = best_prefix_split(Splitter(problem, blocks, roomy=roomy), blocks, deadline)
            placement = fitting(problem, blocks, None if split is None else split.device)
            if placement is not None:
                return solution_of(problem, placement, placer="dnn-partitioning-dp-linear")
        placement = quick_split(problem, blocks)
        if placement is not None:
            return solution_of(problem, placement, placer="dnn-partitioning-dp-linear")
        raise PlacementError("no contiguous split along the order fits into memory")


PLACER = DnnPartitioningDpLinear()
