"""Strongly connected components of a graph of numbered nodes, and depth-first topological orders."""

from collections.abc import Callable, Iterable, Mapping
from graphlib import TopologicalSorter

import numpy as np


def strong_components(nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """The strongly connected component of every node: nodes with paths to each other share a number."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    matrix = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(nodes, nodes))
    components: list[int] = connected_components(matrix, directed=True, connection="strong")[1].tolist()
    return components


def depth_first_order(
    before: Mapping[int, Iterable[int]],
    key: Callable[[int], int],
    *,
    start_key: Callable[[int], int] | None = None,
) -> list[int]:
    """A topological order that completes one branch before it takes the next; `before` names each node's predecessors.

    Of the nodes that become ready together the one with the largest `key` comes first; of the nodes without
    predecessors, the one with the largest `start_key` (default: `key`).
    """
    sorter = TopologicalSorter(before)
    sorter.prepare()
    ready = sorted(sorter.get_ready(), key=start_key or key)
    order = []
    while ready:
        order.append(ready.pop())
        sorter.done(order[-1])
        ready += sorted(sorter.get_ready(), key=key)
    return order
