"""A wish for devices made contiguous: stretches of a topological order, as much as possible where they were wished.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 3, has what
contiguous means. Consecutive stretches of one order, each on a device of its own, always are.
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
from opmark.leaderboards.search.cuts.ideals import depth_first_orders
from opmark.leaderboards.search.cuts.stages import balanced_stages, device_rows
from opmark.leaderboards.simulator.simulate import fits, simulate

Floats = npt.NDArray[np.float64]


def held_together(problem: Problem, placement: Placement) -> Placement:
    """The placement itself wherever it may be as it is; else contiguous stretches that differ from it the least.

    Priorities stay, orders and replicas go with the devices that they were for. Where nothing contiguous fits into
    memory the placement comes back unchanged.
    """
    if not problem.contiguous or returning_unit(problem, placement.device) is None:
        return placement
    blocks = blocks_of(problem)
    wish = np.zeros((blocks.count, problem.arrays.devices))
    np.add.at(wish, (blocks.of_unit, placement.device), _weights(problem))
    for size in (blocks.weight_bytes, blocks.size_bytes):
        found = fitting(problem, blocks, _stretches(problem, blocks, wish, size))
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


def _weights(problem: Problem) -> Floats:
    """What moving a unit changes: its mean time, and a little for those that take none."""
    run = problem.arrays.run_ns
    able = run >= 0
    mean: Floats = np.where(able, run, 0).sum(axis=1) / np.maximum(1, able.sum(axis=1))
    return mean + max(1.0, float(mean.mean())) * 1e-3


def _stretches(problem: Problem, blocks: Blocks, wish: Floats, size: Integers) -> Integers | None:
    """A device per block: the cut of either depth-first order that agrees most with the wishes (B×D); None if none."""
    best: tuple[float, Integers] | None = None
    memory = problem.arrays.device_memory_bytes
    for order in depth_first_orders(blocks):
        rows = list(order)
        place = np.arange(blocks.count, dtype=np.float64)
        asked = wish[rows]
        total = asked.sum(axis=0)
        middle = np.where(total > 0, (asked * place[:, None]).sum(axis=0) / np.maximum(total, 1e-30), np.inf)
        fastest_last = np.argsort([-one for one in device_rows(problem, blocks)], kind="stable")
        room = [(device, int(memory[device])) for device in np.lexsort((fastest_last, middle)).tolist()]
        found = _cut(blocks, rows, asked, np.concatenate([[0], np.cumsum(size[rows])]), room)
        if found is not None and (best is None or found[0] > best[0]):
            best = found
    return None if best is None else best[1]


def _cut(
    blocks: Blocks, order: list[int], asked: Floats, held: Integers, room: Sequence[tuple[int, int]]
) -> tuple[float, Integers] | None:
    """What agrees, and a device per block: stretch k of the order on device `room[k]`, which has so many bytes.

    `held` is what each prefix of the order holds.
    """
    count = len(order)
    # agreed[j]: the most wishes fulfilled if the first j blocks lie on the devices so far
    agreed = np.full(count + 1, -np.inf)
    agreed[0] = 0.0
    choices = []
    for device, memory in room:
        run = blocks.run_ns[order, device]
        unable = np.concatenate([[0], np.cumsum(run < 0)])
        summed = np.concatenate([[0.0], np.cumsum(asked[:, device])])
        # the earliest start without a block it cannot run, and with room for all
        fitting_from = np.searchsorted(held, held - min(memory, int(held[-1])))
        first = np.maximum(np.searchsorted(unable, unable), fitting_from)
        after, chosen = agreed.copy(), np.arange(count + 1)
        gained = agreed - summed
        for end in range(1, count + 1):
            start = int(first[end])
            if start < end:
                most = start + int(gained[start:end].argmax())
                if gained[most] + summed[end] > after[end]:
                    after[end], chosen[end] = gained[most] + summed[end], most
        choices.append(chosen)
        agreed = after
    if not np.isfinite(agreed[count]):
        return None
    device_of = np.zeros(count, dtype=np.int64)
    end = count
    for (device, _), chosen in zip(reversed(room), reversed(choices), strict=True):
        device_of[order[int(chosen[end]) : end]] = device
        end = int(chosen[end])
    return float(agreed[count]), device_of
