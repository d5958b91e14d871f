"""Ranks of units, and the orders in which list schedulers take them.

Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.1 (upward and downward rank); Arabnejad, Barbosa, IEEE TPDS
25(3), 2014, section 4 (optimistic cost table). Communication costs are means over all pairs of devices.
"""

import heapq
from typing import NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.lists.travel import NEVER_NS, mean_travel_ns


class Edge(NamedTuple):
    """A tensor and one unit that reads it."""

    tensor: int
    reader: int


def edges_of_units(problem: Problem) -> list[list[Edge]]:
    """Per unit, an edge for every reader of every tensor that the unit produces."""
    arrays = problem.arrays
    edges: list[list[Edge]] = [[] for _ in range(arrays.units)]
    offsets, readers = arrays.consumer_offsets.tolist(), arrays.consumer_units.tolist()
    for tensor, producer in enumerate(arrays.tensor_producer.tolist()):
        if producer >= 0:
            edges[producer] += [Edge(tensor, reader) for reader in readers[offsets[tensor] : offsets[tensor + 1]]]
    return edges


def readers_of_units(problem: Problem) -> tuple[Integers, Integers]:
    """The readers of each unit as compressed rows (offsets, units), one entry per edge."""
    arrays = problem.arrays
    producer = np.repeat(arrays.tensor_producer, np.diff(arrays.consumer_offsets))
    inner = np.flatnonzero(producer >= 0)
    inner = inner[np.argsort(producer[inner], kind="stable")]
    counts = np.bincount(producer[inner], minlength=arrays.units)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, np.ascontiguousarray(arrays.consumer_units[inner], dtype=np.int64)


def mean_run_ns(problem: Problem) -> Integers:
    """Per unit, the mean execution time over the devices that can run it, in ns."""
    run = problem.arrays.run_ns
    able = run >= 0
    mean: Integers = np.rint(np.where(able, run, 0).sum(axis=1) / able.sum(axis=1)).astype(np.int64)
    return mean


def upward_rank(problem: Problem) -> Integers:
    """Per unit, the length in ns of the longest path from the unit to an exit, the unit included."""
    from opmark.leaderboards.problem.sweeps import upward_rank as compiled

    arrays = problem.arrays
    rank: Integers = compiled(*arrays.packed, arrays.topological, mean_run_ns(problem), mean_travel_ns(problem))
    return rank


def downward_rank(problem: Problem) -> Integers:
    """Per unit, the length in ns of the longest path from an entry to the unit, the unit excluded."""
    arrays = problem.arrays
    run, travel, edges = mean_run_ns(problem).tolist(), mean_travel_ns(problem).tolist(), edges_of_units(problem)
    rank = [0] * arrays.units
    for unit in arrays.topological.tolist():
        for tensor, reader in edges[unit]:
            rank[reader] = max(rank[reader], rank[unit] + run[unit] + travel[tensor])
    return np.array(rank, dtype=np.int64)


def optimistic_cost_table(problem: Problem) -> Integers:
    """U×D: the shortest time in ns from the end of a unit on a device to the exit, if all later units choose freely.

    `NEVER_NS` where the device cannot run the unit.
    """
    arrays = problem.arrays
    run = np.where(arrays.run_ns < 0, NEVER_NS, arrays.run_ns)
    travel, edges = mean_travel_ns(problem), edges_of_units(problem)
    other_device = 1 - np.eye(arrays.devices, dtype=np.int64)
    table = np.zeros((arrays.units, arrays.devices), dtype=np.int64)
    for unit in arrays.topological[::-1].tolist():
        for tensor, reader in edges[unit]:
            # [device of the unit, device of the reader]
            onward = (table[reader] + run[reader])[None, :] + travel[tensor] * other_device
            table[unit] = np.maximum(table[unit], onward.min(axis=1))
    return np.where(arrays.run_ns < 0, NEVER_NS, table)


def falling_order(problem: Problem, rank: Integers) -> Integers:
    """All units by falling rank; of equal ranks, the first in topological order leads."""
    order: Integers = np.lexsort((topological_position(problem), -rank))
    return order


def topological_position(problem: Problem) -> Integers:
    """Per unit, its place in the topological order."""
    topological = problem.arrays.topological
    position = np.empty(len(topological), dtype=np.int64)
    position[topological] = np.arange(len(topological))
    return position


def ready_order(problem: Problem, priority: "Integers | np.ndarray[tuple[int], np.dtype[np.float64]]") -> Integers:
    """All units as a ready list releases them: of the units whose producers are done, the largest `priority` first."""
    offsets, readers = readers_of_units(problem)
    waiting = np.bincount(readers, minlength=problem.arrays.units).tolist()
    flat, starts, key = readers.tolist(), offsets.tolist(), (-np.asarray(priority)).tolist()
    ready = [(key[unit], unit) for unit, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, unit = heapq.heappop(ready)
        order.append(unit)
        for reader in flat[starts[unit] : starts[unit + 1]]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (key[reader], reader))
    return np.array(order, dtype=np.int64)
