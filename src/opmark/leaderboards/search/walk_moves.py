"""Compiled moves of a walk: groups change their device, and a journal says how to take it back. Imported lazily."""

# ruff: noqa: PLR0917 (flat arrays by position; numba knows only the global generator, seeded by the walks)

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

# How likely a move is of one group, of a cluster of any level, of a connected piece, of a stretch of the topological
# order; what is left is for two groups that trade places.
SINGLE, CLUSTER, PIECE, STRETCH = 0.5, 0.57, 0.68, 0.76
# The largest connected piece, and how likely it grows over an edge.
PIECE_AT_MOST, GROWS = 40, 0.8


@njit(cache=True)
def new_journal(groups):  # type: ignore[no-untyped-def]
    """Room for what two moves do: groups, devices before and after, and marks and a queue of G numbers each."""
    room = 2 * groups + 2
    return (
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
        np.empty(groups, dtype=np.int64),
    )


@njit(cache=True)
def _put(chosen, group, target, journal, count):  # type: ignore[no-untyped-def]
    """Move one group; returns how long the journal is now."""
    groups, before, after = journal[0], journal[1], journal[2]
    if chosen[group] == target or count >= len(groups):
        return count
    groups[count], before[count], after[count] = group, chosen[group], target
    chosen[group] = target
    return count + 1


@njit(cache=True)
def undo(chosen, journal, count):  # type: ignore[no-untyped-def]
    """Take a move back, the last step first."""
    for k in range(count - 1, -1, -1):
        chosen[journal[0][k]] = journal[1][k]


@njit(cache=True)
def move(chosen, first, tables, devices, regions, journal, count):  # type: ignore[no-untyped-def]
    """Move group `first`, alone or with others, to another device that can run it; returns the journal's length.

    `tables` are those of `GuidedSearch`. Most moves go where a neighbour is. `journal` is a
    `new_journal`.
    """
    allowed, movable, labels, base, offsets, members, near_offsets, near, _, _ = tables
    mark, queue = journal[3], journal[4]
    groups = len(chosen)
    source = chosen[first]
    target = source
    close = near_offsets[first + 1] - near_offsets[first]
    if close and np.random.random() < 0.6:
        target = chosen[near[near_offsets[first] + np.random.randint(close)]]
    for _ in range(8):
        if target != source and allowed[first * devices + target]:
            break
        target = np.random.randint(devices)
    if target == source or not allowed[first * devices + target]:
        return count
    kind = np.random.random() if regions else 0.0
    if kind < SINGLE:
        return _put(chosen, first, target, journal, count)
    if kind < CLUSTER:
        level = np.random.randint(len(base))
        cluster = base[level] + labels[level * groups + first]
        for k in range(offsets[cluster], offsets[cluster + 1]):
            if allowed[members[k] * devices + target]:
                count = _put(chosen, members[k], target, journal, count)
        return count
    if kind < PIECE:
        size = 2 + int(min(PIECE_AT_MOST, groups // 2) ** np.random.random())
        queue[0] = first
        mark[first] = 1
        tail, head = 1, 0
        while head < tail:
            group = queue[head]
            head += 1
            for k in range(near_offsets[group], near_offsets[group + 1]):
                if tail < size and mark[near[k]] == 0 and np.random.random() < GROWS:
                    mark[near[k]] = 1
                    queue[tail] = near[k]
                    tail += 1
        for k in range(tail):
            mark[queue[k]] = 0
            if allowed[queue[k] * devices + target]:
                count = _put(chosen, queue[k], target, journal, count)
        return count
    if kind < STRETCH:
        length = 1 + np.random.randint(max(2, int(groups ** np.random.random())))
        mixed = np.random.random() < 0.3
        for group in range(first, min(groups, first + length)):
            if (mixed or chosen[group] == source) and allowed[group * devices + target]:
                count = _put(chosen, group, target, journal, count)
        return count
    other = first
    for _ in range(8):
        other = movable[np.random.randint(len(movable))]
        if chosen[other] == target and allowed[other * devices + source]:
            break
    count = _put(chosen, first, target, journal, count)
    if chosen[other] == target and other != first and allowed[other * devices + source]:
        count = _put(chosen, other, source, journal, count)
    return count
