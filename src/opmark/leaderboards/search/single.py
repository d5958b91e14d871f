"""Placements on single devices, and the filling of one device's memory after the other's."""

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.cuts.blocks import blocks_of
from opmark.leaderboards.search.cuts.repair import quick_split, together_rows
from opmark.leaderboards.search.groups import Groups, groups_of, whole_graph_ns
from opmark.leaderboards.simulator.simulate import simulate_many


def single_device_rows(groups: Groups) -> Integers:
    """D×G: for each device, a placement on that device; a group that it cannot run is on its fastest device."""
    devices = groups.run_ns.shape[1]
    fastest = np.where(groups.allowed, groups.run_ns, np.iinfo(np.int64).max).argmin(axis=1)
    rows = [np.where(groups.allowed[:, device], device, fastest) for device in range(devices)]
    return np.array(rows, dtype=np.int64)


def starting_rows(problem: Problem, groups: Groups) -> Integers:
    """Placements (rows of devices per group) from which a search can start: every single device, and a filling.

    In a problem with contiguous parts they are made contiguous, and stages of balanced compute come last.
    """
    rows = np.array([*single_device_rows(groups), fill_by_memory(problem, groups)])
    if not problem.contiguous:
        return rows
    split = quick_split(problem, blocks_of(problem))
    table = together_rows(problem, groups.spread(rows))
    whole = np.array([*table, *([] if split is None else [split.device])])
    return np.ascontiguousarray(whole[:, [row[0] for row in groups.members]])


def best_single_device(problem: Problem) -> tuple[Integers, int]:
    """A device per unit and its cost: the cheapest single device, or a filling by memory if no single device fits.

    This is the zero of the score scale. Raises `PlacementError` if neither fits.
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
    """A device per group: groups in topological order on one device until it is full, then on the next.

    `cap_bytes` (default: the memory) is per device. Devices stand from the fastest on the whole graph to the slowest;
    the last one takes all that is left.
    """
    cap = (problem.arrays.device_memory_bytes if cap_bytes is None else cap_bytes).tolist()
    order = np.argsort(whole_graph_ns(groups.run_ns), kind="stable").tolist()
    allowed, sizes = groups.allowed.tolist(), groups.size_bytes.tolist()
    used = [0] * len(order)
    chosen = np.empty(groups.count, dtype=np.int64)
    position = 0
    for group, size in enumerate(sizes):
        while position < len(order) - 1 and used[order[position]] + size > cap[order[position]]:
            position += 1
        device = next(one for one in order[position:] + order[:position] if allowed[group][one])
        chosen[group] = device
        used[device] += size
    return chosen
