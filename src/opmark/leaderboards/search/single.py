"""Everything on one device: the zero of the score scale."""

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.repair import quick_split, together_rows
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.simulator.simulate import simulate_many


def single_device_rows(groups: Groups) -> Integers:
    """A row of devices per group for each device: that device wherever it can run the group, else the fastest."""
    devices = groups.run_ns.shape[1]
    fastest = np.where(groups.allowed, groups.run_ns, np.iinfo(np.int64).max).argmin(axis=1)
    rows = [np.where(groups.allowed[:, number], number, fastest) for number in range(devices)]
    return np.array(rows, dtype=np.int64)


def starting_rows(problem: Problem, groups: Groups) -> Integers:
    """A device per group, row by row, for a search to start from: every single device, and a filling by memory.

    Where a problem asks for contiguous parts these are made so, and stages of balanced compute come last.
    """
    rows = np.array([*single_device_rows(groups), fill_by_memory(problem, groups)])
    if not problem.contiguous:
        return rows
    split = quick_split(problem, blocks_of(problem))
    table = together_rows(problem, groups.spread(rows))
    whole = np.array([*table, *([] if split is None else [split.device])])
    return np.ascontiguousarray(whole[:, [row[0] for row in groups.members]])


def best_single_device(problem: Problem) -> tuple[Integers, int]:
    """A device per unit and its cost: the best device that can hold everything it can run, or a filling by memory.

    Raises `PlacementError` where neither fits.
    """
    groups = groups_of(problem)
    rows = [*single_device_rows(groups), fill_by_memory(problem, groups)]
    table = together_rows(problem, groups.spread(np.array(rows)))
    costs = simulate_many(problem, table)
    singles = costs[:-1]
    best = int(singles.argmin()) if (singles < INVALID_COST).any() else len(rows) - 1
    if costs[best] == INVALID_COST:
        raise PlacementError("no single device holds it, and filling one after the other does not fit either")
    return table[best], int(costs[best])


def fill_by_memory(problem: Problem, groups: Groups, cap_bytes: Integers | None = None) -> Integers:
    """Groups in topological order onto one device until `cap_bytes` (default: its memory) is full, then onto the next.

    The devices stand from the fastest on the whole graph to the slowest; the last takes what is left.
    """
    cap = problem.arrays.device_memory_bytes if cap_bytes is None else cap_bytes
    unable = np.where(groups.allowed, 0.0, np.inf).sum(axis=0)
    speed = (np.where(groups.allowed, groups.run_ns, 0).sum(axis=0) + unable).tolist()
    order = sorted(range(len(speed)), key=lambda number: (speed[number], number))
    used = np.zeros(len(order), dtype=np.int64)
    chosen = np.empty(groups.count, dtype=np.int64)
    position = 0
    for group in range(groups.count):
        size = groups.size_bytes[group]
        while position < len(order) - 1 and used[order[position]] + size > cap[order[position]]:
            position += 1
        able = [number for number in order[position:] + order[:position] if groups.allowed[group, number]]
        chosen[group] = able[0]
        used[able[0]] += size
    return chosen
