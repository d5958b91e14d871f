"""Compiled neighbours of a placement, and simulation of placements that keep a strict order. Imported lazily."""

# ruff: noqa: PLR0917, PLR0915 (flat arrays by position; numba knows only the global generator, seeded here)

import heapq

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

from opmark.leaderboards.simulator import engine


@njit(cache=True)
def neighbours(seed, chosen, priority, rows, ranks, reorder, regions, hot, tables, by_rank):  # type: ignore[no-untyped-def]
    """Fill `rows` (B×G devices) and `ranks` (B×U priorities) with neighbours of `chosen` and `priority`.

    A share `reorder` of them changes a priority, the others devices: of one group, of a cluster of any level, of a
    stretch of the topological order, or of two groups that trade places. Half of them start from a `hot` group. Without
    `regions` only single groups move.
    """
    allowed, movable, labels, base, offsets, members, neighbour_offsets, neighbour, unit_offsets, units = tables
    groups = len(chosen)
    devices = len(allowed) // groups
    levels = len(base)
    np.random.seed(seed)
    position = np.empty(len(by_rank), dtype=np.int64)
    for k in range(len(by_rank)):
        position[by_rank[k]] = k
    for b in range(len(rows)):
        row = rows[b]
        row[:] = chosen
        if len(ranks):
            ranks[b, :] = priority
        steps = 2 if np.random.random() < 0.2 else 1
        for _ in range(steps):
            if len(hot) and np.random.random() < 0.5:
                first = hot[np.random.randint(len(hot))]
            else:
                first = movable[np.random.randint(len(movable))]
            if len(ranks) and np.random.random() < reorder:
                unit = units[unit_offsets[first] + np.random.randint(unit_offsets[first + 1] - unit_offsets[first])]
                reach = 2 + np.random.randint(1 + len(by_rank) // 4) if np.random.random() < 0.3 else 6
                place = position[unit] + np.random.randint(-reach, reach + 1)
                other = by_rank[max(0, min(len(by_rank) - 1, place))]
                ranks[b, unit] = priority[other] + (1 if place < position[unit] else -1)
                continue
            target = row[first]
            near = neighbour_offsets[first + 1] - neighbour_offsets[first]
            if near and np.random.random() < 0.6:
                target = row[neighbour[neighbour_offsets[first] + np.random.randint(near)]]
            for _ in range(8):
                if target != row[first] and allowed[first * devices + target]:
                    break
                target = np.random.randint(devices)
            if target == row[first] or not allowed[first * devices + target]:
                continue
            kind = np.random.random() if regions else 0.0
            source = row[first]
            if kind < 0.4:
                row[first] = target
            elif kind < 0.7:
                level = np.random.randint(levels)
                cluster = base[level] + labels[level * groups + first]
                for k in range(offsets[cluster], offsets[cluster + 1]):
                    if allowed[members[k] * devices + target]:
                        row[members[k]] = target
            elif kind < 0.85:
                length = 1 + np.random.randint(max(2, int(groups ** np.random.random())))
                for group in range(first, min(groups, first + length)):
                    if row[group] == source and allowed[group * devices + target]:
                        row[group] = target
            else:
                other = first
                for _ in range(8):
                    other = movable[np.random.randint(len(movable))]
                    if row[other] == target and allowed[other * devices + source]:
                        break
                row[first] = target
                if row[other] == target and other != first and allowed[other * devices + source]:
                    row[other] = source


@njit(cache=True)
def sequence_of(data, readers, waiting_of, priority, sequence):  # type: ignore[no-untyped-def]
    """Fill `sequence`: among units whose inputs are there, the one of largest priority comes next."""
    offsets, units = readers
    waiting = waiting_of.copy()
    heap = [(0, 0) for _ in range(0)]
    for unit in range(data[0]):
        if waiting[unit] == 0:
            heapq.heappush(heap, (-priority[unit], unit))
    count = 0
    while len(heap) > 0:
        _, unit = heapq.heappop(heap)
        sequence[count] = unit
        count += 1
        for k in range(offsets[unit], offsets[unit + 1]):
            waiting[units[k]] -= 1
            if waiting[units[k]] == 0:
                heapq.heappush(heap, (-priority[units[k]], units[k]))


@njit(cache=True)
def order_of(device, sequence, offsets, order):  # type: ignore[no-untyped-def]
    """Fill the compressed rows of a strict order per device: `sequence`, device by device."""
    offsets[:] = 0
    for unit in sequence:
        offsets[device[unit] + 1] += 1
    for number in range(len(offsets) - 1):
        offsets[number + 1] += offsets[number]
    place = offsets[:-1].copy()
    for unit in sequence:
        order[place[device[unit]]] = unit
        place[device[unit]] += 1


@njit(cache=True)
def run_strict(data, starts, devices, ranks, readers, waiting, contention, outputs, peaks):  # type: ignore[no-untyped-def]
    """As `engine.run_many` for rows of devices and priorities (both B×U), every device in the order of priorities."""
    units, count = data[0], data[2]
    costs = np.empty(len(devices), dtype=np.int64)
    sequence, order = np.empty(units, dtype=np.int64), np.empty(units, dtype=np.int64)
    offsets = np.empty(count + 1, dtype=np.int64)
    for row in range(len(devices)):
        sequence_of(data, readers, waiting, ranks[row], sequence)
        order_of(devices[row], sequence, offsets, order)
        status = engine.run(data, starts, devices[row], ranks[row], offsets, order, contention, outputs)
        costs[row] = outputs[0][0] if status == engine.FINISHED else engine.INVALID
        peaks[row, :] = outputs[10]
    return costs
