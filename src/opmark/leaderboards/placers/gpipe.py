"""GPipe: stages of equal compute in a row; every micro-batch forward, then every micro-batch backward.

Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019, section 2:
the partition balances the estimated compute of the stages and ignores transfers. All micro-batches are in flight at
once (schedule `fill-drain`), so that memory must hold the activations of all of them.
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
    """One stage per device, the fastest device first; fewer stages if a pipeline over all devices does not fit."""

    summary = "contiguous stages of balanced compute, all micro-batches in flight (GPipe, NeurIPS'19)"

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the longest pipeline that fits; the best single device if none fits."""
        del seed
        incumbent = Incumbent(problem, "gpipe", budget_s)
        blocks = blocks_of(problem)
        devices = device_rows(problem, blocks)
        schedule = "fill-drain" if problem.in_micro_batches else ""
        for count in range(len(devices), 0, -1):
            stages = balanced_stages(blocks, devices[:count])
            if stages is None or not _holds_all(problem, blocks, stages):
                continue
            if incumbent.consider(Placement(device=stages[blocks.of_unit], schedule=schedule)):
                return incumbent.solution()
        incumbent.consider(Placement(device=best_single_device(problem)[0], schedule=schedule))
        return incumbent.solution()


def _holds_all(problem: Problem, blocks: Blocks, stages: Integers) -> bool:
    """True if memory holds the weights and the activations of all micro-batches, or does not count activations."""
    if problem.memory_mode != "stash":
        return True
    held = np.zeros(problem.arrays.devices, dtype=np.int64)
    activations = blocks.size_bytes - blocks.weight_bytes
    np.add.at(held, stages, blocks.weight_bytes + activations * max(1, problem.micro_batches))
    return bool((held <= problem.arrays.device_memory_bytes).all())


PLACER = GPipe()
