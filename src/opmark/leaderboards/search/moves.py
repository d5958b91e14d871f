"""The one neighbourhood of every search, compiled: draw a move, and take it back. Imported lazily.

A move changes the device of one group, of a region of any level, of a connected piece or of a stretch of the
topological order; or two groups, or two whole devices, trade places; or a unit moves within the order of priorities.
"""

from typing import NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.tables import internal, uncounted
from opmark.leaderboards.search.regions import Neighbourhood

# Cumulative: a move is of one group, of a region, of a connected piece, of a stretch of the topological order, of two
# groups that trade places, and else of two devices that trade all groups.
SINGLE, REGION, PIECE, STRETCH, TRADE = 0.5, 0.57, 0.68, 0.76, 0.99
# How often a group goes where a neighbour is, a stretch takes along the groups of other devices, and two moves are made
# at once.
NEAR, MIXED, TWICE = 0.6, 0.3, 0.2
# The largest connected piece, and the chance that it grows over an edge.
PIECE_AT_MOST, GROWS = 40, 0.8
TRIES = 8
# The factor of xorshift64* in two halves, so that no product overflows: numpy warns of that in plain Python.
FACTOR = 2685821657736338717
HALF_BITS, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
FACTOR_HIGH, FACTOR_LOW = np.uint64(FACTOR >> 32), np.uint64(FACTOR & 0xFFFFFFFF)
# A unit moves this far in the order of priorities, or (in this share of cases) up to a quarter of the order.
STEP, LEAP = 6, 0.3


class MoveJournal(NamedTuple):
    """One move: groups with their devices before and after, and a unit's places in the order of priorities.

    `length` has the number of entries; `unit` is the unit (-1: none), its place before, and its place after. `mark` and
    `queue` are room to work in.
    """

    groups: Integers
    before: Integers
    after: Integers
    length: Integers
    unit: Integers
    mark: Integers
    queue: Integers


class Moves(NamedTuple):
    """The choices and regions of groups, the journal of the move that was drawn last, and the random numbers."""

    hood: Neighbourhood
    journal: MoveJournal
    random: "np.ndarray[tuple[int], np.dtype[np.uint64]]"


def moves_of(hood: Neighbourhood, seed: int) -> Moves:
    """Moves with a generator of their own."""
    groups = len(hood.allowed)
    two_moves = 2 * groups + 2
    sizes = (two_moves, two_moves, two_moves, 1, 3, groups, groups)
    journal = MoveJournal._make(np.zeros(size, dtype=np.int64) for size in sizes)
    random = np.random.default_rng(seed).integers(1, 2**63, size=1, dtype=np.uint64)
    return Moves(hood=hood, journal=journal, random=random)


@internal
def uniform(random):  # type: ignore[no-untyped-def]
    """The generator's next number from 0 to 1 (xorshift64*: Vigna, ACM TOMS 42(4), 2016); `random` is not 0."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    low = (x & LOW_HALF) * FACTOR_LOW
    high = (x & LOW_HALF) * FACTOR_HIGH + (x >> HALF_BITS) * FACTOR_LOW + (low >> HALF_BITS)
    return np.float64(((high << HALF_BITS) | (low & LOW_HALF)) >> np.uint64(11)) / 9007199254740992.0


@uncounted
def below(random, count):  # type: ignore[no-untyped-def]
    """A whole number from 0 to `count` - 1."""
    return int(uniform(random) * count)


@internal
def put(chosen, group, target, journal):  # type: ignore[no-untyped-def]
    """Move one group and write it down."""
    k = journal.length[0]
    if chosen[group] != target and k < len(journal.groups):
        journal.groups[k], journal.before[k], journal.after[k] = group, chosen[group], target
        journal.length[0] = k + 1
        chosen[group] = target


@internal
def other_device(chosen, group, hood, random):  # type: ignore[no-untyped-def]
    """A device that can run `group`, often that of a neighbour; its own where none was found."""
    target = chosen[group]
    near = hood.near_offsets[group + 1] - hood.near_offsets[group]
    if near > 0 and uniform(random) < NEAR:
        target = chosen[hood.near_groups[hood.near_offsets[group] + below(random, near)]]
    for _ in range(TRIES):
        if target != chosen[group] and hood.allowed[group, target]:
            return target
        target = below(random, hood.allowed.shape[1])
    return chosen[group]


@internal
def put_piece(chosen, first, target, moves):  # type: ignore[no-untyped-def]
    """Move a connected piece that grows from `first`."""
    hood, journal, random = moves
    size = 2 + int(min(PIECE_AT_MOST, len(chosen) // 2) ** uniform(random))
    journal.queue[0] = first
    journal.mark[first] = 1
    head, tail = 0, 1
    while head < tail:
        group = journal.queue[head]
        head += 1
        for k in range(hood.near_offsets[group], hood.near_offsets[group + 1]):
            other = hood.near_groups[k]
            if tail < size and journal.mark[other] == 0 and uniform(random) < GROWS:
                journal.mark[other] = 1
                journal.queue[tail] = other
                tail += 1
    for k in range(tail):
        group = journal.queue[k]
        journal.mark[group] = 0
        if hood.allowed[group, target]:
            put(chosen, group, target, journal)


@uncounted
def move_groups(chosen, first, moves, regions):  # type: ignore[no-untyped-def]
    """Move group `first`, alone or (with `regions`) with others, to another device that can run it."""
    hood, journal, random = moves
    source = chosen[first]
    target = other_device(chosen, first, hood, random)
    if target == source:
        return
    kind = uniform(random) if regions else 0.0
    if kind < SINGLE:
        put(chosen, first, target, journal)
    elif kind < REGION:
        region = hood.regions[below(random, len(hood.regions)), first]
        for k in range(hood.region_offsets[region], hood.region_offsets[region + 1]):
            if hood.allowed[hood.region_groups[k], target]:
                put(chosen, hood.region_groups[k], target, journal)
    elif kind < PIECE:
        put_piece(chosen, first, target, moves)
    elif kind < STRETCH:
        length = 1 + below(random, max(2, int(len(chosen) ** uniform(random))))
        mixed = uniform(random) < MIXED
        for group in range(first, min(len(chosen), first + length)):
            if (mixed or chosen[group] == source) and hood.allowed[group, target]:
                put(chosen, group, target, journal)
    elif kind < TRADE:
        other = first
        for _ in range(TRIES):
            other = hood.movable[below(random, len(hood.movable))]
            if chosen[other] == target and hood.allowed[other, source]:
                put(chosen, other, source, journal)
                break
        put(chosen, first, target, journal)
    else:
        for group in range(len(chosen)):
            if chosen[group] == source and hood.allowed[group, target]:
                put(chosen, group, target, journal)
            elif chosen[group] == target and hood.allowed[group, source]:
                put(chosen, group, source, journal)


@internal
def shift(order, rank, start, end):  # type: ignore[no-untyped-def]
    """Move the unit at place `start` of the order of priorities to place `end`; `rank` is the place of each unit."""
    unit = order[start]
    step = 1 if end > start else -1
    for place in range(start, end, step):
        order[place] = order[place + step]
        rank[order[place]] = place
    order[end] = unit
    rank[unit] = end


@uncounted
def move_unit(order, rank, first, moves):  # type: ignore[no-untyped-def]
    """Move a unit of group `first` within the order of priorities."""
    hood, journal, random = moves
    unit = hood.units[hood.unit_offsets[first] + below(random, hood.unit_offsets[first + 1] - hood.unit_offsets[first])]
    reach = 2 + below(random, 1 + len(order) // 4) if uniform(random) < LEAP else STEP
    start = rank[unit]
    end = max(0, min(len(order) - 1, start - reach + below(random, 2 * reach + 1)))
    if end != start:
        shift(order, rank, start, end)
        journal.unit[0], journal.unit[1], journal.unit[2] = unit, start, end


@uncounted
def undo(chosen, order, rank, journal):  # type: ignore[no-untyped-def]
    """Take the whole journal back, the last entry first."""
    for k in range(journal.length[0] - 1, -1, -1):
        chosen[journal.groups[k]] = journal.before[k]
    if journal.unit[0] >= 0:
        shift(order, rank, journal.unit[2], journal.unit[1])


@uncounted
def neighbour_rows(chosen, rows, moves):  # type: ignore[no-untyped-def]
    """Fill every row (B×G) with a neighbour of `chosen`."""
    hood = moves.hood
    # A literal would compile `move_groups` once more, and assigning a whole row the text of its error.
    together = np.bool_(True)
    for k in range(len(rows)):
        moves.journal.length[0] = 0
        row = rows[k]
        for group in range(len(chosen)):
            row[group] = chosen[group]
        move_groups(row, hood.movable[below(moves.random, len(hood.movable))], moves, together)
