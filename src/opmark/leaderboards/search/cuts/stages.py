"""Stages of a pipeline: blocks in a depth-first order cut into stretches, one per device of a given row."""

from collections.abc import Sequence

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks
from opmark.leaderboards.search.cuts.ideals import depth_first_orders

_NEVER = 2**62


def device_rows(problem: Problem, blocks: Blocks) -> list[int]:
    """Devices from the fastest on the whole graph to the slowest; what cannot run all of it comes last."""
    able = blocks.run_ns >= 0
    missing = (~able).sum(axis=0)
    total = np.where(able, blocks.run_ns, 0).sum(axis=0)
    order: list[int] = np.lexsort((np.arange(problem.arrays.devices), total, missing)).tolist()
    return order


def balanced_stages(blocks: Blocks, devices: Sequence[int], *, boundary_ns: Integers | None = None) -> Integers | None:
    """A device per block: stretch k of the order runs on `devices[k]`, the slowest stage as fast as can be.

    A stage may be empty, so that slow devices idle. `boundary_ns` (one entry per place of the order) is what a cut
    before that block adds to both its stages. None where a device in the row can run too little.
    """
    best: tuple[int, Integers] | None = None
    for order in depth_first_orders(blocks):
        found = _cut(blocks, order, devices, boundary_ns)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


def _cut(
    blocks: Blocks, order: Sequence[int], devices: Sequence[int], boundary_ns: Integers | None
) -> tuple[int, Integers] | None:
    count = len(order)
    cut = np.zeros(count + 1, dtype=np.int64)
    if boundary_ns is not None:
        cut[:count] = boundary_ns[list(order)]
    cut[0] = 0
    # load[j]: the slowest stage if the first j blocks lie on the devices so far
    load = np.full(count + 1, _NEVER, dtype=np.int64)
    load[0] = 0
    choices = []
    for device in devices:
        run = blocks.run_ns[list(order), device]
        summed = np.concatenate([[0], np.cumsum(np.maximum(run, 0))])
        unable = np.concatenate([[0], np.cumsum(run < 0)])
        after, chosen = load.copy(), np.arange(count + 1)
        for end in range(1, count + 1):
            first = int(np.searchsorted(unable, unable[end]))  # the earliest start without a block it cannot run
            span = summed[end] - summed[first:end] + cut[first:end] + cut[end]
            worst = np.maximum(load[first:end], span)
            if len(worst) and worst.min() < after[end]:
                chosen[end] = first + int(worst.argmin())
                after[end] = int(worst.min())
        choices.append(chosen)
        load = after
    if load[count] >= _NEVER:
        return None
    device_of = np.zeros(count, dtype=np.int64)
    end = count
    for device, chosen in zip(reversed(devices), reversed(choices), strict=True):
        for place in range(int(chosen[end]), end):
            device_of[order[place]] = device
        end = int(chosen[end])
    return int(load[count]), device_of


def cut_ns(problem: Problem, blocks: Blocks) -> Integers:
    """Per block, what its forward inputs from other blocks take to travel, in ns on the mean of all routes."""
    from opmark.leaderboards.search.lists.travel import mean_travel_ns

    arrays = problem.arrays
    travel = mean_travel_ns(problem)
    found = np.zeros(blocks.count, dtype=np.int64)
    seen: set[tuple[int, int]] = set()
    lengths = np.diff(arrays.consumer_offsets)
    for tensor, reader in zip(
        np.repeat(np.arange(len(lengths)), lengths).tolist(), arrays.consumer_units.tolist(), strict=True
    ):
        maker, block = int(arrays.tensor_producer[tensor]), int(blocks.of_unit[reader])
        if maker >= 0 and blocks.of_unit[maker] != block and (tensor, block) not in seen:
            seen.add((tensor, block))
            found[block] += travel[tensor]
    return found
