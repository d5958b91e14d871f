"""GPipe: stages of equal compute in a row; every micro-batch forward, then every micro-batch backward.

Huang et al., "GPipe: Efficient training of giant neural networks using pipeline parallelism", NeurIPS 2019: the
partition balances the estimated compute of the stages and ignores transfers (section 2.2). All micro-batches are in
flight at once (section 2.3, schedule `fill-drain`). Where memory does not hold their activations, a stage keeps only
what it was handed, and computes its forward pass again before its backward pass.
"""

from dataclasses import replace

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement, Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.repair import held_together
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.search.placer import Placer
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.simulator.evaluation import evaluate


class GPipe(Placer):
    """One stage per device, the fastest device first; fewer stages if a pipeline over all devices does not fit."""

    summary = "contiguous stages of balanced compute, all micro-batches in flight, recomputed if need be (GPipe)"
    paper = Placer.cites(
        "Huang et al.: GPipe: efficient training of giant neural networks using pipeline parallelism, NeurIPS",
        2019,
        link="https://arxiv.org/abs/1811.06965",
    )

    def place(self, problem: Problem, *, budget_s: float, seed: int) -> Solution:
        """Return the longest pipeline that fits, without recomputation if possible; the best single device if none."""
        del budget_s, seed
        blocks = blocks_of(problem)
        devices = device_rows(problem, blocks)
        schedule = "fill-drain" if problem.in_micro_batches else ""
        trains = any(unit.phase == "backward" for unit in problem.units)
        for count in range(len(devices), 0, -1):
            stages = balanced_stages(blocks, devices[:count])
            if stages is None:
                continue
            placement = held_together(problem, Placement(device=stages[blocks.of_unit], schedule=schedule))
            for again in (False, True) if trains else (False,):
                solution = solution_of(problem, placement, placer="gpipe")
                if again:
                    units = stage_again(problem, placement.device)
                    solution = replace(solution, recompute=tuple(problem.units[unit].name for unit in units))
                if _holds_all(problem, placement.device, again=again) and _fits(problem, solution):
                    return solution
        single = best_single_device(problem)[0]
        for name in dict.fromkeys((schedule, "")):
            solution = solution_of(problem, Placement(device=single, schedule=name), placer="gpipe")
            if _fits(problem, solution):
                return solution
        raise PlacementError("no pipeline fits into memory, and no single device")


PLACER = GPipe()


def stage_again(problem: Problem, device: Integers) -> list[int]:
    """Section 2.3: the forward units that a stage runs again, all that its backward pass needs but was not handed."""
    arrays = problem.arrays
    forward = [unit.phase == "forward" for unit in problem.units]
    place = device.tolist()
    needed = np.zeros(arrays.units, dtype=bool)
    for unit in reversed(arrays.topological.tolist()):
        for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
            maker = int(arrays.tensor_producer[tensor])
            if maker >= 0 and forward[maker] and (not forward[unit] or (needed[unit] and place[maker] == place[unit])):
                needed[maker] = True
    return np.flatnonzero(needed).tolist()


def _fits(problem: Problem, solution: Solution) -> bool:
    """True if the simulator accepts the solution, its memory included."""
    try:
        evaluate(problem, solution)
    except PlacementError:
        return False
    return True


def _holds_all(problem: Problem, device: Integers, *, again: bool) -> bool:
    """True if memory holds every micro-batch of a stream, which is simulated as 1F1B; steps are simulated as told."""
    if problem.memory_mode != "stash" or problem.in_micro_batches:
        return True
    arrays = problem.arrays
    kept, once = np.zeros(arrays.devices, dtype=np.int64), np.zeros(arrays.devices, dtype=np.int64)
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        readers = arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]]
        source = int(arrays.tensor_home[tensor]) if maker < 0 else int(device[maker])
        holders = {source, *device[readers].tolist()}
        stays = again and maker >= 0 and len(holders) == 1
        for holder in holders:
            (once if stays else kept)[holder] += arrays.tensor_bytes[tensor]
    weights = np.zeros(arrays.devices, dtype=np.int64)
    blocks = blocks_of(problem)
    place = np.zeros(blocks.count, dtype=np.int64)
    place[blocks.of_unit] = device
    np.add.at(weights, place, blocks.weight_bytes)
    held = weights + once + kept * max(1, problem.micro_batches)
    return bool((held <= arrays.device_memory_bytes).all())
