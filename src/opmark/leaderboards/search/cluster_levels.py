"""Groups merged level by level along heavy edges, so that a search can move whole regions of a graph.

Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput.
20(1), 1998, section 3.1: every level matches each cluster with the neighbour it is tied to most heavily. An edge weighs
what its tensors take to travel, over the work of both ends, so that light chains grow together first.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups
from opmark.leaderboards.search.lists.travel import mean_travel_ns

FEWEST = 4
LEVELS_AT_MOST = 16
# A level that leaves more than this share of its clusters is the last.
PROGRESS = 0.95

Edges = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLevels:
    """`labels` (L×G) is the cluster of each group per level, level 0 being the groups themselves.

    Members of cluster c of level l are `members[offsets[base[l] + c]:offsets[base[l] + c + 1]]`. `neighbours`, in rows
    of `neighbour_offsets`, are the groups that share a tensor with each group.
    """

    labels: Integers
    base: Integers
    offsets: Integers
    members: Integers
    neighbour_offsets: Integers
    neighbours: Integers

    def at_most(self, clusters: int) -> Integers:
        """The labels of the finest level that has at most so many clusters, or of the coarsest."""
        return next((row for row in self.labels if row.max() < clusters), self.labels[-1])


def cluster_levels(problem: Problem, groups: Groups) -> ClusterLevels:
    """Levels of about half as many clusters each; clusters share at least one device that can run them."""
    edges = group_edges(problem, groups)
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
    sizes = [int(row.max()) + 1 for row in labels]
    counts = [np.bincount(row, minlength=size) for row, size in zip(labels, sizes, strict=True)]
    rows: list[list[int]] = [[] for _ in range(groups.count)]
    for a, b in edges:
        rows[a].append(b)
        rows[b].append(a)
    return ClusterLevels(
        labels=np.array(labels, dtype=np.int64),
        base=np.cumsum([0, *sizes[:-1]]).astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
        members=np.concatenate([np.argsort(row, kind="stable") for row in labels]).astype(np.int64),
        neighbour_offsets=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        neighbours=np.array([other for row in rows for other in row], dtype=np.int64),
    )


def group_edges(problem: Problem, groups: Groups) -> Edges:
    """What travels between two groups (the lower number first), in ns on the mean of all routes."""
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
