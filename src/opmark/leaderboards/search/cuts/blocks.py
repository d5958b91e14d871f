"""Blocks, the units of contiguous partitions: colocation groups, with cycles between groups contracted."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.graph_orders import depth_first_order, strong_components
from opmark.leaderboards.search.groups import Groups, groups_of, summed_run_ns


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """B blocks in a topological order of their forward units.

    `of_unit` is the block of each unit; `before` and `after` are the neighbours of each block along forward tensors.
    `run_ns` (B×D) sums the times of a block's units, -1 if a device cannot run them all. `weight_bytes` and
    `size_bytes` are sums over groups.
    """

    of_unit: Integers
    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]
    run_ns: Integers
    weight_bytes: Integers
    size_bytes: Integers

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.before)

    @cached_property
    def depth_first_orders(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two topological orders that complete one branch before the next: by falling and by rising block number."""
        before = dict(enumerate(self.before))
        return tuple(depth_first_order(before, lambda block: block)), tuple(
            depth_first_order(before, lambda block: -block)
        )


def blocks_of(problem: Problem) -> Blocks:
    """The blocks of `problem`; only forward tensors order them, since a backward unit returns to its forward unit.

    A group without a forward unit joins the block of the last group it reads from. Raises `PlacementError` as
    `groups_of` does.
    """
    # Kept with the arrays that the blocks are computed from, like a cached property.
    known: Blocks | None = problem.arrays.__dict__.get("blocks")
    if known is None:
        known = problem.arrays.__dict__["blocks"] = _contracted(problem)
    return known


def _contracted(problem: Problem) -> Blocks:
    groups = groups_of(problem)
    edges, leader = _forward_edges(problem, groups)
    led = {(leader[a], leader[b]) for a, b in edges if leader[a] != leader[b]}
    component = _numbered_components(groups.count, led)
    block = np.array([component[leader[group]] for group in range(groups.count)], dtype=np.int64)
    count = int(block.max()) + 1
    weight, size = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(weight, block, groups.weight_bytes)
    np.add.at(size, block, groups.size_bytes)
    before: list[set[int]] = [set() for _ in range(count)]
    after: list[set[int]] = [set() for _ in range(count)]
    for a, b in edges:
        if block[a] != block[b]:
            before[block[b]].add(int(block[a]))
            after[block[a]].add(int(block[b]))
    return Blocks(
        of_unit=block[groups.of_unit],
        before=tuple(map(frozenset, before)),
        after=tuple(map(frozenset, after)),
        run_ns=summed_run_ns(groups.run_ns, block, count),
        weight_bytes=weight,
        size_bytes=size,
    )


def _forward_edges(problem: Problem, groups: Groups) -> tuple[set[tuple[int, int]], list[int]]:
    """Edges between groups along forward tensors, and per group its leader: itself, or the group that it joins."""
    arrays = problem.arrays
    forward = [unit.phase == "forward" for unit in problem.units]
    of_unit = groups.of_unit.tolist()
    position = {unit: number for number, unit in enumerate(arrays.topological.tolist())}
    offsets, readers = arrays.consumer_offsets.tolist(), arrays.consumer_units.tolist()
    passed = [
        (position[producer], producer, reader)
        for tensor, producer in enumerate(arrays.tensor_producer.tolist())
        if producer >= 0
        for reader in readers[offsets[tensor] : offsets[tensor + 1]]
    ]
    with_forward = {of_unit[unit] for unit, is_forward in enumerate(forward) if is_forward}
    edges: set[tuple[int, int]] = set()
    follows: dict[int, int] = {}
    for _, producer, reader in sorted(passed):
        a, b = of_unit[producer], of_unit[reader]
        if forward[producer] and forward[reader] and a != b:
            edges.add((a, b))
        if b not in with_forward and a != b:
            follows[b] = a if a in with_forward else follows.get(a, a)
    leader = list(range(groups.count))
    for group, followed in follows.items():
        leader[group] = followed if followed in with_forward else group
    return edges, leader


def _numbered_components(nodes: int, edges: set[tuple[int, int]]) -> list[int]:
    """The strongly connected component of every node, numbered in a depth-first topological order."""
    component = strong_components(nodes, edges)
    before: dict[int, set[int]] = {one: set() for one in component}
    for a, b in edges:
        if component[a] != component[b]:
            before[component[b]].add(component[a])
    order = depth_first_order(before, lambda one: one, start_key=lambda one: -one)
    number = {one: place for place, one in enumerate(order)}
    return [number[one] for one in component]
