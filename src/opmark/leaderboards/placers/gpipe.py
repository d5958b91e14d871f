"""GPipe: stages of equal compute in a row, every micro-batch forward, then every micro-batch backward.

Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019, section 2:
layers are partitioned so that the estimated compute of the stages is balanced; transfers play no part. All
micro-batches are in flight at once, so that a problem that says how many there are must have room for all of them. A
step of micro-batches fills and drains.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.incumbent import Incumbent
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device


class GPipe(Placer):
    """One stage per device, the fastest device first; fewer stages where a pipeline of all devices does not fit."""

    summary = "contiguous stages of balanced compute, all micro-batches in flight (GPipe, NeurIPS'19)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """The longest pipeline that fits; the best single device where none does."""
        del seed
        incumbent = Incumbent(problem, "gpipe", budget_s)
        blocks = blocks_of(problem)
        row = device_rows(problem, blocks)
        schedule = "fill-drain" if problem.in_micro_batches else ""
        for count in range(len(row), 0, -1):
            stages = balanced_stages(blocks, row[:count])
            if stages is None or not _holds_all(problem, blocks, stages):
                continue
            if incumbent.consider(Placement(device=stages[blocks.of_unit], schedule=schedule)):
                return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0], schedule=schedule))
        return incumbent.solution()


def _holds_all(problem: Problem, blocks: Blocks, stages: Integers) -> bool:
    """Whether the activations of all micro-batches fit beside the weights, where memory counts what is stashed."""
    if problem.memory_mode != "stash":
        return True
    held = np.zeros(problem.arrays.devices, dtype=np.int64)
    activations = blocks.size_bytes - blocks.weight_bytes
    np.add.at(held, stages, blocks.weight_bytes + activations * max(1, problem.micro_batches))
    return bool((held <= problem.arrays.device_memory_bytes).all())


PLACER = GPipe()
