"""What a contiguous partition may cut: colocation classes with the cycles between them contracted."""

from dataclasses import dataclass

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """B blocks in a topological order of their forward units.

    `of_unit` is each unit's block; `before` and `after` are the blocks next to each by a forward tensor; `run_ns` (B×D)
    sums a block's units, -1 where a device cannot run them all. `weight_bytes` and `size_bytes` are those of `Groups`.
    """

    of_unit: Integers
    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]
    run_ns: Integers
    weight_bytes: Integers
    size_bytes: Integers

    @property
    def count(self) -> int:
        """How many blocks."""
        return len(self.before)


def blocks_of(problem: Problem) -> Blocks:
    """Groups become blocks; only forward tensors order them, since a backward unit returns to its forward one.

    A group without a forward unit goes with the last block it reads from. Raises `PlacementError` as `groups_of` does.
    """
    groups = groups_of(problem)
    arrays = problem.arrays
    forward = [unit.phase == "forward" for unit in problem.units]
    of_unit = groups.of_unit.tolist()
    edges: set[tuple[int, int]] = set()
    led = {of_unit[unit] for unit, first in enumerate(forward) if first}
    follows: dict[int, int] = {}
    offsets, readers = arrays.consumer_offsets.tolist(), arrays.consumer_units.tolist()
    position = {unit: number for number, unit in enumerate(arrays.topological.tolist())}
    made = [
        (position[maker], maker, reader)
        for tensor, maker in enumerate(arrays.tensor_producer.tolist())
        if maker >= 0
        for reader in readers[offsets[tensor] : offsets[tensor + 1]]
    ]
    for _, maker, reader in sorted(made):
        a, b = of_unit[maker], of_unit[reader]
        if forward[maker] and forward[reader] and a != b:
            edges.add((a, b))
        if b not in led and a != b:
            follows[b] = a if a in led else follows.get(a, a)
    parent = list(range(groups.count))
    for orphan, leader in follows.items():
        parent[orphan] = leader if leader in led else orphan
    component = _components(groups.count, {(parent[a], parent[b]) for a, b in edges if parent[a] != parent[b]})
    of_group = [component[parent[group]] for group in range(groups.count)]
    count = max(of_group) + 1
    run = np.zeros((count, arrays.devices), dtype=np.int64)
    unable = np.zeros((count, arrays.devices), dtype=bool)
    np.add.at(run, of_group, np.maximum(groups.run_ns, 0))
    np.logical_or.at(unable, of_group, groups.run_ns < 0)
    run[unable] = -1
    weight, size = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(weight, of_group, groups.weight_bytes)
    np.add.at(size, of_group, groups.size_bytes)
    before: list[set[int]] = [set() for _ in range(count)]
    after: list[set[int]] = [set() for _ in range(count)]
    for a, b in edges:
        if of_group[a] != of_group[b]:
            before[of_group[b]].add(of_group[a])
            after[of_group[a]].add(of_group[b])
    return Blocks(
        of_unit=np.array(of_group, dtype=np.int64)[groups.of_unit],
        before=tuple(map(frozenset, before)),
        after=tuple(map(frozenset, after)),
        run_ns=run,
        weight_bytes=weight,
        size_bytes=size,
    )


def _components(count: int, edges: set[tuple[int, int]]) -> list[int]:
    """The strongly connected component of every number, numbered in topological order of the quotient."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    matrix = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    total, label = connected_components(matrix, directed=True, connection="strong")
    labels: list[int] = label.tolist()
    after: list[set[int]] = [set() for _ in range(total)]
    waiting = [0] * total
    for a, b in pairs.tolist():
        if labels[a] != labels[b] and labels[b] not in after[labels[a]]:
            after[labels[a]].add(labels[b])
            waiting[labels[b]] += 1
    ready = sorted((one for one in range(total) if not waiting[one]), reverse=True)
    rank = [0] * total
    for number in range(total):
        one = ready.pop()
        rank[one] = number
        for other in sorted(after[one]):
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return [rank[one] for one in labels]
