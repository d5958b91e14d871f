"""Balanced pipeline stages: a depth-first order of the blocks, cut into one stretch per device of a given row."""

from collections.abc import Sequence

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.blocks import Blocks
from opmark.leaderboards.search.lists.travel import mean_travel_ns

_NEVER = 2**62


def device_rows(problem: Problem, blocks: Blocks) -> list[int]:
    """All devices from the fastest on the whole graph to the slowest; those that cannot run all of it come last."""
    able = blocks.run_ns >= 0
    missing = (~able).sum(axis=0)
    total = np.where(able, blocks.run_ns, 0).sum(axis=0)
    order: list[int] = np.lexsort((np.arange(problem.arrays.devices), total, missing)).tolist()
    return order


def balanced_stages(blocks: Blocks, devices: Sequence[int], *, boundary_ns: Integers | None = None) -> Integers | None:
    """A device per block: stretch k of the order runs on `devices[k]`, and the slowest stage is as fast as possible.

    A stage may be empty, so that slow devices idle. A cut before a block adds its `boundary_ns` (B) to both stages.
    None if the devices cannot run all blocks.
    """
    best: tuple[int, Integers] | None = None
    for order in blocks.depth_first_orders:
        found = _cut(blocks, list(order), devices, boundary_ns)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


def _cut(
    blocks: Blocks, order: list[int], devices: Sequence[int], boundary_ns: Integers | None
) -> tuple[int, Integers] | None:
    """The time of the slowest stage, and a device per block."""
    count = len(order)
    cut = np.zeros(count + 1, dtype=np.int64)
    if boundary_ns is not None:
        cut[:count] = boundary_ns[order]
    cut[0] = 0
    # load[j] is the time of the slowest stage if the first j blocks are on the devices so far.
    load = np.full(count + 1, _NEVER, dtype=np.int64)
    load[0] = 0
    starts = []
    for device in devices:
        run = blocks.run_ns[order, device]
        summed = np.concatenate([[0], np.cumsum(np.maximum(run, 0))])
        unable = np.concatenate([[0], np.cumsum(run < 0)])
        after, start = load.copy(), np.arange(count + 1)
        for end in range(1, count + 1):
            first = int(np.searchsorted(unable, unable[end]))  # the earliest start without a block it cannot run
            span = summed[end] - summed[first:end] + cut[first:end] + cut[end]
            worst = np.maximum(load[first:end], span)
            if len(worst) and worst.min() < after[end]:
                start[end] = first + int(worst.argmin())
                after[end] = int(worst.min())
        starts.append(start)
        load = after
    return None if load[count] >= _NEVER else (int(load[count]), devices_of_stretches(order, devices, starts))


def devices_of_stretches(order: list[int], devices: Sequence[int], starts: Sequence[Integers]) -> Integers:
    """A device per block; if `devices[k]` runs a stretch that ends at place e, it begins at place `starts[k][e]`."""
    device_of = np.zeros(len(order), dtype=np.int64)
    end = len(order)
    for device, start in zip(reversed(devices), reversed(starts), strict=True):
        device_of[order[int(start[end]) : end]] = device
        end = int(start[end])
    return device_of


def cut_ns(problem: Problem, blocks: Blocks) -> Integers:
    """Per block, the summed mean travel time of its inputs from other blocks, in ns."""
    arrays = problem.arrays
    travel = mean_travel_ns(problem)
    tensor = np.repeat(np.arange(len(travel)), np.diff(arrays.consumer_offsets))
    producer = arrays.tensor_producer[tensor]
    block = blocks.of_unit[arrays.consumer_units]
    crossing = (producer >= 0) & (blocks.of_unit[producer] != block)
    # A tensor travels once to each block.
    pairs = np.unique(np.stack([tensor[crossing], block[crossing]]), axis=1)
    found = np.zeros(blocks.count, dtype=np.int64)
    np.add.at(found, pairs[1], travel[pairs[0]])
    return found
