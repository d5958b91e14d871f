"""Ideals of a graph of blocks, and dynamic programs over them that run in slices of time.

An ideal is a set of blocks that contains everything before its members. Tarnawski et al., "Efficient Algorithms for
Device Placement of DNN Graph Operators", NeurIPS 2020, section 5.1.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.search.cuts.blocks import Blocks

# The number of blocks that one word of a bit set holds.
WORD = 62
# Writing the ideals as arrays takes this share of the time of listing them.
WRITING_SHARE = 0.6
# The steps of the first and of the longest slice, the intended duration of a slice, and its largest growth: the speed
# of a slice with little to do says little about the next one.
FIRST_STEPS, MOST_STEPS = 2_000, 4_000_000
SLICE_S = 0.02
GROWTH = 4.0
# Graphs whose ideals are kept, and so many ideals at most: the fleets of a pool differ in devices alone.
GRAPHS_KEPT, IDEALS_KEPT = 4, 20_000


class Ideals(NamedTuple):
    """I ideals by size: the empty set first, the whole graph last.

    `bits` (I×W) holds `WORD` blocks per word. `child[offsets[i]:offsets[i + 1]]` are the ideals with one more block
    than ideal i, and `added` names that block.
    """

    bits: Integers
    offsets: Integers
    child: Integers
    added: Integers

    @property
    def number(self) -> int:
        """The number of ideals."""
        return len(self.bits)

    def difference(self, larger: int, smaller: int) -> list[int]:
        """The blocks of one ideal that another one lacks."""
        words = (self.bits[larger] & ~self.bits[smaller]).tolist()
        return [WORD * k + bit for k, word in enumerate(words) for bit in range(WORD) if word >> bit & 1]


def every_ideal(blocks: Blocks, *, at_most: int, deadline: float) -> Ideals | None:
    """All ideals; None if there are more than `at_most`, or at the `deadline` (as `time.monotonic`)."""
    known = _listing(blocks.before, blocks.after)
    if known.ideals is not None:
        return known.ideals if known.ideals.number <= at_most else None
    if at_most <= known.more_than:
        return None
    begun = time.monotonic()
    listed_by = begun + (deadline - begun) / (1 + WRITING_SHARE)
    before = [sum(1 << other for other in row) for row in blocks.before]
    masks = [0]
    number = {0: 0}
    addable = [tuple(block for block in range(blocks.count) if not before[block])]
    edges: list[list[tuple[int, int]]] = []
    for index, mask in enumerate(masks):  # The list grows during the loop, level by level.
        if len(masks) > at_most:
            known.more_than = at_most
            return None
        if index % 256 == 0 and time.monotonic() > listed_by:
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
    found = _ideals(masks, edges, blocks.count)
    if found.number <= IDEALS_KEPT:
        known.ideals = found
    return found


@dataclass(slots=True)
class _Listing:
    """The ideals of one graph once they are listed; until then a number that they exceed."""

    ideals: Ideals | None = None
    more_than: int = 0


@lru_cache(maxsize=GRAPHS_KEPT)
def _listing(before: tuple[frozenset[int], ...], after: tuple[frozenset[int], ...]) -> _Listing:
    """The listing of the graph with these neighbours of each block, as far as it has come."""
    del before, after
    return _Listing()


def prefixes(blocks: Blocks, order: Sequence[int]) -> Ideals:
    """The chain of ideals along one topological order of the blocks."""
    masks = [0]
    for block in order:
        masks.append(masks[-1] | 1 << block)
    edges = [[(index + 1, block)] for index, block in enumerate(order)]
    return _ideals(masks, [*edges, []], blocks.count)


def _ideals(masks: list[int], edges: list[list[tuple[int, int]]], blocks: int) -> Ideals:
    low = (1 << WORD) - 1
    words = range(-(-blocks // WORD))
    flat = [edge for row in edges for edge in row]
    return Ideals(
        bits=np.array([[mask >> WORD * word & low for word in words] for mask in masks], dtype=np.int64),
        offsets=np.cumsum([0, *(len(row) for row in edges)], dtype=np.int64),
        child=np.array([child for child, _ in flat], dtype=np.int64),
        added=np.array([block for _, block in flat], dtype=np.int64),
    )


def run_in_slices(program: Callable[[int], None], position: Integers, ideals: int, deadline: float) -> bool:
    """Call `program(steps)` until `position[0]`, the ideal it has reached, is `ideals`.

    False at the `deadline` (as `time.monotonic`). Compiled programs cannot look at the clock themselves.
    """
    steps, now = FIRST_STEPS, time.monotonic()
    while position[0] < ideals:
        if now > deadline:
            return False
        program(steps)
        begun, now = now, time.monotonic()
        grown = int(steps * min(GROWTH, SLICE_S / max(1e-6, now - begun)))
        steps = min(MOST_STEPS, max(FIRST_STEPS, grown))
    return True
