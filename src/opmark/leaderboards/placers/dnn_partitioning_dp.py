"""The dynamic program of dnn-partitioning over all ideals: the optimal contiguous split by maximum load.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.1. The
linearised answer bounds it, so that only parts that could beat it are grown.
"""

import time

from opmark.core.errors import PlacementError
from opmark.leaderboards.placers.dnn_partitioning_dp_linear import (
    UNBOUNDED_NS,
    best_prefix_split,
    compile_program,
)
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.ideals import every_ideal
from opmark.leaderboards.search.cuts.max_load_split import Splitter
from opmark.leaderboards.search.cuts.repair import fitting, quick_split
from opmark.leaderboards.search.placer import Placer

# Ideals times numbers of used devices that are kept in memory at most: three tables of 8 bytes each.
STATES_AT_MOST = 8_000_000


class DnnPartitioningDp(Placer):
    """Optimal where all ideals can be listed, else the linearised answer."""

    summary = "optimal contiguous split by maximum load over all ideals (Tarnawski 2020)"

    def prepare(self) -> None:
        """Compile the program."""
        compile_program()

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Keeps the linearised answer where the budget ends first. Raises `PlacementError` where no split fits."""
        del seed
        deadline = time.monotonic() + budget_s * 0.8
        blocks = blocks_of(problem)
        quick = quick_split(problem, blocks)
        lattice = None
        for roomy in (problem.memory_mode != "sum", False):
            splitter = Splitter(problem, blocks, roomy=roomy)
            split = best_prefix_split(splitter, blocks, deadline)
            if lattice is None and time.monotonic() < deadline:
                lattice = every_ideal(blocks, at_most=STATES_AT_MOST // splitter.states, deadline=deadline)
            if lattice is not None:
                bound_ns = UNBOUNDED_NS if split is None else split.load_ns
                split = splitter.solve(lattice, bound_ns, deadline) or split
            placement = fitting(problem, blocks, None if split is None else split.device)
            if placement is not None:
                return solution_of(problem, placement, placer="dnn-partitioning-dp")
        if quick is not None:
            return solution_of(problem, quick, placer="dnn-partitioning-dp")
        raise PlacementError("no contiguous split fits into memory")


PLACER = DnnPartitioningDp()
