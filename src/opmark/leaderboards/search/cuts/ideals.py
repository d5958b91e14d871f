"""Ideals of a graph of blocks: sets that contain everything before their members, and which block leads to which."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.search.cuts.blocks import Blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """I ideals by size, the empty one first and the whole graph last.

    `bits` (I×W) holds 62 blocks per word. `child[offsets[i]:offsets[i + 1]]` are the ideals with one block more, which
    `added` names.
    """

    bits: Integers
    offsets: Integers
    child: Integers
    added: Integers

    @property
    def count(self) -> int:
        """How many ideals."""
        return len(self.bits)


# Writing the ideals down as arrays takes so much of the time that listing them took.
WRITING_SHARE = 0.6


def every_ideal(blocks: Blocks, *, at_most: int, deadline: float) -> Lattice | None:
    """All ideals, or None where there are more than `at_most` or time runs out (`deadline` as `time.monotonic`)."""
    begun = time.monotonic()
    listed_by = begun + (deadline - begun) / (1 + WRITING_SHARE)
    before = [sum(1 << other for other in row) for row in blocks.before]
    masks = [0]
    number = {0: 0}
    addable = [tuple(block for block in range(blocks.count) if not before[block])]
    edges: list[list[tuple[int, int]]] = []
    for index, mask in enumerate(masks):  # grows while it is walked, level by level
        if len(masks) > at_most or (index % 256 == 0 and time.monotonic() > listed_by):
            return None
        row = []
        for block in addable[index]:
            larger = mask | 1 << block
            if larger not in number:
                number[larger] = len(masks)
                masks.append(larger)
                fresh = [other for other in blocks.after[block] if before[other] & larger == before[other]]
                addable.append((*(other for other in addable[index] if other != block), *fresh))
            row.append((number[larger], block))
        edges.append(row)
    return _lattice(masks, edges, blocks.count)


def prefixes(blocks: Blocks, order: Sequence[int]) -> Lattice:
    """The chain of ideals along one topological order of the blocks."""
    masks = [0]
    for block in order:
        masks.append(masks[-1] | 1 << block)
    edges = [[(index + 1, block)] for index, block in enumerate(order)]
    return _lattice(masks, [*edges, []], blocks.count)


def depth_first_orders(blocks: Blocks) -> tuple[tuple[int, ...], ...]:
    """Topological orders that finish one branch before the next: later blocks first, and earlier ones first."""
    found = []
    for sign in (1, -1):
        waiting = [len(row) for row in blocks.before]
        ready = sorted((block for block in range(blocks.count) if not waiting[block]), key=lambda one: sign * one)
        order = []
        while ready:
            block = ready.pop()
            order.append(block)
            for other in sorted(blocks.after[block], key=lambda one: sign * one):
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
        found.append(tuple(order))
    return tuple(found)


def _lattice(masks: list[int], edges: list[list[tuple[int, int]]], count: int) -> Lattice:
    words = -(-count // 62)
    low = (1 << 62) - 1
    bits = np.array([[mask >> 62 * word & low for word in range(words)] for mask in masks], dtype=np.int64)
    flat = [edge for row in edges for edge in row]
    return Lattice(
        bits=bits,
        offsets=np.cumsum([0, *(len(row) for row in edges)], dtype=np.int64),
        child=np.array([child for child, _ in flat], dtype=np.int64),
        added=np.array([block for _, block in flat], dtype=np.int64),
    )
