"""The neighbourhood of a placement: which groups may go where, and the regions of the graph that move together.

Groups are merged level by level along heavy edges: Karypis, Kumar, "A fast and high quality multilevel scheme for
partitioning irregular graphs", SIAM J. Sci. Comput. 20(1), 1998, section 3.1. An edge weighs the time its tensors take
to travel over the work of both ends, so that light chains grow together first.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of
from opmark.leaderboards.search.lists.travel import mean_travel_ns

FEWEST = 4
LEVELS_AT_MOST = 16
# A level that leaves more than this share of the regions is the last.
PROGRESS = 0.95

Edges = dict[tuple[int, int], int]


class Neighbourhood(NamedTuple):
    """The tables that moves read; compiled code takes them as they are.

    `allowed` (G×D) is 1 where a device can run a group; `movable` are the groups with a choice. `regions` (L×G) is the
    region of each group per level, numbered through all levels; level 0 is the groups themselves. The members of
    region r are `region_groups[region_offsets[r]:region_offsets[r + 1]]`; rows of `near_groups` and `units` are the
    groups that share a tensor with a group, and its units.
    """

    allowed: Integers
    movable: Integers
    regions: Integers
    region_offsets: Integers
    region_groups: Integers
    near_offsets: Integers
    near_groups: Integers
    unit_offsets: Integers
    units: Integers
    group_of_unit: Integers


def neighbourhood_of(problem: Problem) -> Neighbourhood:
    """The neighbourhood of a problem's groups. Raises `PlacementError` as `groups_of` does."""
    groups = groups_of(problem)
    edges = group_edges(problem, groups)
    levels = region_levels(groups, edges)
    near: list[list[int]] = [[] for _ in range(groups.count)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    first = np.cumsum([0, *(int(row.max()) + 1 for row in levels)]).astype(np.int64)
    sizes = np.concatenate([np.bincount(row) for row in levels])
    return Neighbourhood(
        allowed=groups.allowed.astype(np.int64),
        movable=np.flatnonzero(groups.allowed.sum(axis=1) > 1).astype(np.int64),
        regions=levels + first[:-1, None],
        region_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        region_groups=np.concatenate([np.argsort(row, kind="stable") for row in levels]).astype(np.int64),
        near_offsets=np.cumsum([0, *map(len, near)]).astype(np.int64),
        near_groups=np.array([other for row in near for other in row], dtype=np.int64),
        unit_offsets=np.cumsum([0, *map(len, groups.members)]).astype(np.int64),
        units=np.array([unit for row in groups.members for unit in row], dtype=np.int64),
        group_of_unit=groups.of_unit,
    )


def region_levels(groups: Groups, edges: Edges) -> Integers:
    """L×G: the region of each group per level, about half as many each; some device can run a whole region."""
    work = groups.run_ns.max(axis=1).astype(np.float64) + 1
    able = groups.allowed.copy()
    labels = [np.arange(groups.count)]
    level = dict(edges)
    while len(labels) < LEVELS_AT_MOST and len(work) > FEWEST:
        match = _matching(level, work, able)
        count = int(match.max()) + 1
        if count > PROGRESS * len(work):
            break
        labels.append(match[labels[-1]])
        level = _merged(level, match.tolist())
        grown, shared = np.zeros(count), np.ones((count, able.shape[1]), dtype=bool)
        np.add.at(grown, match, work)
        np.logical_and.at(shared, match, able)
        work, able = grown, shared
    return np.array(labels, dtype=np.int64)


def group_edges(problem: Problem, groups: Groups) -> Edges:
    """The travel time between two groups (the lower number first), in ns on the mean of all routes."""
    arrays = problem.arrays
    travel, of_unit = mean_travel_ns(problem).tolist(), groups.of_unit.tolist()
    readers, bounds = arrays.consumer_units.tolist(), pairwise(arrays.consumer_offsets.tolist())
    edges: Edges = {}
    for tensor, (maker, (first, last)) in enumerate(zip(arrays.tensor_producer.tolist(), bounds, strict=True)):
        if maker < 0:
            continue
        for other in sorted({of_unit[reader] for reader in readers[first:last]} - {of_unit[maker]}):
            key = min(of_unit[maker], other), max(of_unit[maker], other)
            edges[key] = edges.get(key, 0) + travel[tensor]
    return edges


def _merged(edges: Edges, number: list[int]) -> Edges:
    merged: Edges = {}
    for (a, b), ns in edges.items():
        key = min(number[a], number[b]), max(number[a], number[b])
        if key[0] != key[1]:
            merged[key] = merged.get(key, 0) + ns
    return merged


def _matching(edges: Edges, work: Any, able: Any) -> Integers:
    """A new number per cluster: the same for the two ends of a matched edge."""
    total = work.tolist()
    heavy = sorted(edges, key=lambda edge: (-(edges[edge] + 1) / (total[edge[0]] + total[edge[1]]), edge))
    partner = [-1] * len(total)
    for a, b in heavy:
        if partner[a] < 0 and partner[b] < 0 and (able[a] & able[b]).any():
            partner[a], partner[b] = b, a
    number = [-1] * len(total)
    count = 0
    for one, other in enumerate(partner):
        if number[one] < 0:
            number[one] = count
            if other >= 0:
                number[other] = count
            count += 1
    return np.array(number, dtype=np.int64)
