"""Placements made contiguous: stretches of a topological order that change as few devices as possible.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 3, defines
contiguous. Consecutive stretches of one order, each on a device of its own, always are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.contiguity import returning_unit
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks, blocks_of
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows, devices_of_stretches
from opmark.leaderboards.simulator.simulate import fits, simulate

Floats = npt.NDArray[np.float64]


def held_together(problem: Problem, placement: Placement) -> Placement:
    """The placement itself if it is contiguous or need not be; else the contiguous stretches closest to it.

    Priorities stay; orders and replicas are dropped with the devices they were for. If nothing contiguous fits into
    memory, the placement comes back unchanged.
    """
    if not problem.contiguous or returning_unit(problem, placement.device) is None:
        return placement
    blocks = blocks_of(problem)
    weight = np.zeros((blocks.count, problem.arrays.devices))
    np.add.at(weight, (blocks.of_unit, placement.device), _unit_weights(problem))
    for size in (blocks.weight_bytes, blocks.size_bytes):
        found = fitting(problem, blocks, _stretches(problem, blocks, weight, size))
        if found is not None:
            return replace(found, priority=placement.priority)
    found = quick_split(problem, blocks)
    return placement if found is None else replace(found, priority=placement.priority)


def together_rows(problem: Problem, table: Integers) -> Integers:
    """`held_together` for every row of devices per unit."""
    if not problem.contiguous:
        return table
    return np.array([held_together(problem, Placement(device=row)).device for row in table], dtype=np.int64)


def fitting(problem: Problem, blocks: Blocks, device_of_block: Integers | None) -> Placement | None:
    """A device per block as a placement, if it runs and fits into memory."""
    if device_of_block is None:
        return None
    placement = Placement(device=device_of_block[blocks.of_unit])
    try:
        return placement if fits(problem, simulate(problem, placement)) else None
    except PlacementError:
        return None


def quick_split(problem: Problem, blocks: Blocks) -> Placement | None:
    """Stages of balanced compute on as many devices as fit: the answer if there is no time for a better one."""
    row = device_rows(problem, blocks)
    for count in range(len(row), 0, -1):
        placement = fitting(problem, blocks, balanced_stages(blocks, row[:count]))
        if placement is not None:
            return placement
    return None


def _unit_weights(problem: Problem) -> Floats:
    """The weight of a unit's device: the unit's mean time, and a little for units that take no time."""
    run = problem.arrays.run_ns
    able = run >= 0
    mean: Floats = np.where(able, run, 0).sum(axis=1) / np.maximum(1, able.sum(axis=1))
    return mean + max(1.0, float(mean.mean())) * 1e-3


def _stretches(problem: Problem, blocks: Blocks, weight: Floats, size: Integers) -> Integers | None:
    """A device per block: the cut of either depth-first order that keeps the most `weight` (B×D); None if none fits."""
    best: tuple[float, Integers] | None = None
    memory = problem.arrays.device_memory_bytes
    fastest_last = np.argsort([-one for one in device_rows(problem, blocks)], kind="stable")
    for order in map(list, blocks.depth_first_orders):
        ordered = weight[order]
        total = ordered.sum(axis=0)
        place = np.arange(blocks.count, dtype=np.float64)
        # Devices stand in the order of the mean places of their blocks.
        middle = np.where(total > 0, (ordered * place[:, None]).sum(axis=0) / np.maximum(total, 1e-30), np.inf)
        devices = np.lexsort((fastest_last, middle)).tolist()
        held = np.concatenate([[0], np.cumsum(size[order])])
        found = _cut(blocks, order, ordered, held, [(device, int(memory[device])) for device in devices])
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return None if best is None else best[1]


def _cut(
    blocks: Blocks, order: list[int], weight: Floats, held: Integers, room: Sequence[tuple[int, int]]
) -> tuple[float, Integers] | None:
    """The weight that is kept, and a device per block; stretch k of the order is on `room[k]`: (device, its bytes).

    `held` is the bytes of each prefix of the order.
    """
    count = len(order)
    # kept[j] is the most weight kept if the first j blocks are on the devices so far.
    kept = np.full(count + 1, -np.inf)
    kept[0] = 0.0
    starts = []
    for device, memory in room:
        run = blocks.run_ns[order, device]
        unable = np.concatenate([[0], np.cumsum(run < 0)])
        summed = np.concatenate([[0.0], np.cumsum(weight[:, device])])
        # The earliest start of a stretch that the device can run and that fits into its memory.
        fitting_from = np.searchsorted(held, held - min(memory, int(held[-1])))
        first = np.maximum(np.searchsorted(unable, unable), fitting_from)
        after, chosen = kept.copy(), np.arange(count + 1)
        gained = kept - summed
        for end in range(1, count + 1):
            start = int(first[end])
            if start < end:
                most = start + int(gained[start:end].argmax())
                if gained[most] + summed[end] > after[end]:
                    after[end], chosen[end] = gained[most] + summed[end], most
        starts.append(chosen)
        kept = after
    if not np.isfinite(kept[count]):
        return None
    return float(kept[count]), devices_of_stretches(order, [device for device, _ in room], starts)
