"""Few clusters of groups that never wait for one another: stretches of one depth-first topological order."""

import heapq
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups
from opmark.leaderboards.search.lists.travel import mean_travel_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class AcyclicClusters:
    """C clusters in topological order: the cluster of each group, and (from, to) -> ns for what they hand on.

    `run_ns` is C×D, -1 where a device cannot run all of a cluster; `weight_bytes` counts shared weights once per group.
    """

    of_group: Integers
    edges: dict[tuple[int, int], int]
    run_ns: Integers
    weight_bytes: Integers

    @property
    def count(self) -> int:
        """How many clusters."""
        return len(self.run_ns)


def acyclic_clusters(problem: Problem, groups: Groups, at_most: int) -> AcyclicClusters:
    """At most so many clusters, the lightest neighbours in a depth-first order joined first.

    Groups that wait for one another (a class with units at both ends of a path) are one cluster. Clusters that no
    device could run are not joined, so that there may be more.
    """
    edges = _directed(problem, groups)
    component = _components(groups.count, edges)
    order = _depth_first(component, edges)
    rank = {one: number for number, one in enumerate(order)}
    label = np.array([rank[one] for one in component], dtype=np.int64)
    run, weight = _sums(groups, label, len(order))
    work = np.where(run >= 0, run, 0).max(axis=1).astype(np.float64) + 1
    first = _lightest_joined(work.tolist(), [row >= 0 for row in run], at_most)
    of_group = np.unique(first, return_inverse=True)[1].astype(np.int64)[label]
    joined: dict[tuple[int, int], int] = {}
    for (a, b), ns in edges.items():
        key = int(of_group[a]), int(of_group[b])
        if key[0] != key[1]:
            joined[key] = joined.get(key, 0) + ns
    run, weight = _sums(groups, of_group, int(of_group.max()) + 1)
    return AcyclicClusters(of_group=of_group, edges=joined, run_ns=run, weight_bytes=weight)


def _lightest_joined(work: list[float], able: list[npt.NDArray[np.bool_]], at_most: int) -> list[int]:
    """Per member of a row, the first member of its piece; neighbours of least work are joined until few are left."""
    count = len(work)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    heap: list[tuple[float, int, int]] = []

    def ask(left: int) -> None:
        """Offer to join a piece with the next one, where a device could run both."""
        if left >= 0 and after[left] < count and (able[left] & able[after[left]]).any():
            heapq.heappush(heap, (work[left] + work[after[left]], left, after[left]))

    for number in range(count):
        ask(number)
    alive, left_over = [True] * count, count
    while left_over > at_most and heap:
        total, left, right = heapq.heappop(heap)
        if not (alive[left] and alive[right]) or after[left] != right or total != work[left] + work[right]:
            continue  # one of them has grown since
        work[left], able[left], alive[right] = total, able[left] & able[right], False
        after[left] = after[right]
        if after[right] < count:
            before[after[right]] = left
        left_over -= 1
        ask(left)
        ask(before[left])
    found, own = [], 0
    for number in range(count):
        own = number if alive[number] else own
        found.append(own)
    return found


def _directed(problem: Problem, groups: Groups) -> dict[tuple[int, int], int]:
    arrays = problem.arrays
    travel, of_unit = mean_travel_ns(problem).tolist(), groups.of_unit.tolist()
    readers, bounds = arrays.consumer_units.tolist(), pairwise(arrays.consumer_offsets.tolist())
    edges: dict[tuple[int, int], int] = {}
    for tensor, (maker, (first, last)) in enumerate(zip(arrays.tensor_producer.tolist(), bounds, strict=True)):
        if maker >= 0:
            for other in sorted({of_unit[reader] for reader in readers[first:last]} - {of_unit[maker]}):
                edges[of_unit[maker], other] = edges.get((of_unit[maker], other), 0) + travel[tensor]
    return edges


def _components(count: int, edges: dict[tuple[int, int], int]) -> list[int]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    matrix = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    found: list[int] = connected_components(matrix, directed=True, connection="strong")[1].tolist()
    return found


def _depth_first(component: list[int], edges: dict[tuple[int, int], int]) -> list[int]:
    """A topological order of the components that goes on with what was just made possible."""
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(component, ()))
    for a, b in sorted(edges):
        if component[a] != component[b]:
            sorter.add(component[b], component[a])
    sorter.prepare()
    first = {one: number for number, one in reversed(list(enumerate(component)))}
    ready = sorted(sorter.get_ready(), key=first.__getitem__, reverse=True)
    order = []
    while ready:
        order.append(ready.pop())
        sorter.done(order[-1])
        ready += sorted(sorter.get_ready(), key=first.__getitem__, reverse=True)
    return order


def _sums(groups: Groups, label: Integers, count: int) -> tuple[Integers, Integers]:
    devices = groups.run_ns.shape[1]
    run, unable = np.zeros((count, devices), dtype=np.int64), np.zeros((count, devices), dtype=bool)
    np.add.at(run, label, np.maximum(groups.run_ns, 0))
    np.logical_or.at(unable, label, groups.run_ns < 0)
    run[unable] = -1
    weight = np.zeros(count, dtype=np.int64)
    np.add.at(weight, label, groups.weight_bytes)
    return run, weight
