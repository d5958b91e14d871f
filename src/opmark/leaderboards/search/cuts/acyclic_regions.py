"""A coarse graph without cycles: regions of groups that are stretches of one depth-first topological order."""

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.graph_orders import depth_first_order, strong_components
from opmark.leaderboards.search.groups import Groups, summed_run_ns
from opmark.leaderboards.search.lists.travel import group_traffic_ns

Traffic = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcyclicRegions:
    """R regions in topological order; (producer, reader) -> `traffic_ns` between them.

    `of_group` is the region of each group; `run_ns` is R×D, -1 if a device cannot run all of a region. `weight_bytes`
    counts shared weights once per group.
    """

    of_group: Integers
    traffic_ns: Traffic
    run_ns: Integers
    weight_bytes: Integers

    @property
    def count(self) -> int:
        """The number of regions."""
        return len(self.run_ns)


def acyclic_regions(problem: Problem, groups: Groups, at_most: int) -> AcyclicRegions:
    """Join the lightest neighbours of a depth-first order until `at_most` regions are left.

    Groups that wait for each other (a class with units at both ends of a path) share a region. Regions without a common
    device are not joined, so that more may be left.
    """
    traffic = group_traffic_ns(problem, groups)
    component = strong_components(groups.count, traffic)
    place = {one: number for number, one in enumerate(_depth_first(component, traffic))}
    label = np.array([place[one] for one in component], dtype=np.int64)
    run = summed_run_ns(groups.run_ns, label, len(place))
    work = np.where(run >= 0, run, 0).max(axis=1).astype(np.float64) + 1
    first = _join_lightest(work.tolist(), [row >= 0 for row in run], at_most)
    of_group = np.unique(first, return_inverse=True)[1].astype(np.int64)[label]
    between: Traffic = {}
    for (a, b), ns in traffic.items():
        key = int(of_group[a]), int(of_group[b])
        if key[0] != key[1]:
            between[key] = between.get(key, 0) + ns
    count = int(of_group.max()) + 1
    weight = np.zeros(count, dtype=np.int64)
    np.add.at(weight, of_group, groups.weight_bytes)
    return AcyclicRegions(
        of_group=of_group,
        traffic_ns=between,
        run_ns=summed_run_ns(groups.run_ns, of_group, count),
        weight_bytes=weight,
    )


def _depth_first(component: list[int], traffic: Traffic) -> list[int]:
    """The components in a depth-first topological order; of several ready ones, that of the first group leads."""
    before: dict[int, set[int]] = {one: set() for one in component}
    for a, b in traffic:
        if component[a] != component[b]:
            before[component[b]].add(component[a])
    first = {one: group for group, one in reversed(list(enumerate(component)))}
    return depth_first_order(before, lambda one: -first[one])


def _join_lightest(work: list[float], able: list[npt.NDArray[np.bool_]], at_most: int) -> list[int]:
    """Per item of a row, the first item of its region; the neighbours with the least work are joined first."""
    count = len(work)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    heap: list[tuple[float, int, int]] = []

    def offer(left: int) -> None:
        """Queue a region and the next one if a device could run both."""
        if left >= 0 and after[left] < count and (able[left] & able[after[left]]).any():
            heapq.heappush(heap, (work[left] + work[after[left]], left, after[left]))

    for number in range(count):
        offer(number)
    alive, regions = [True] * count, count
    while regions > at_most and heap:
        total, left, right = heapq.heappop(heap)
        if not (alive[left] and alive[right]) or after[left] != right or total != work[left] + work[right]:
            continue  # One of the two has grown since.
        work[left], able[left], alive[right] = total, able[left] & able[right], False
        after[left] = after[right]
        if after[right] < count:
            before[after[right]] = left
        regions -= 1
        offer(left)
        offer(before[left])
    found, own = [], 0
    for number in range(count):
        own = number if alive[number] else own
        found.append(own)
    return found
