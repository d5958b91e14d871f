"""Compiled annealing where schedules count: draw, look at what cannot pass, simulate, take or leave. Imported lazily.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983. A neighbour's limit is drawn
before it is simulated, so that a lower bound of its schedule (the longest path through its devices, and what each of
them has to do) is often enough to leave it, as in branch and bound.
"""

# ruff: noqa: PLR0917, PLR0915 (compiled functions take flat arrays by position, and unpack them)

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

from opmark.leaderboards.problem import packing as at
from opmark.leaderboards.search.search_engine import order_of, sequence_of
from opmark.leaderboards.search.walk_moves import move, new_journal, undo
from opmark.leaderboards.simulator import engine

# How often a group that decides the cost is wanted, and how often two moves are made at once.
HOT, TWICE = 0.5, 0.2


@njit(cache=True)
def least_ns(device, topological, run_ns, travel, graph, tails, room):  # type: ignore[no-untyped-def]
    """A lower bound on the latency of one pass: the longest path, and per device its work between heads and tails.

    `travel` is M×D×D ns on empty links; `tails` is U least ns from each unit's end to the end of all. `room` is U ends,
    D work, D heads, D tails.
    """
    inputs, input_tensors, producer, home, slots = graph
    end, work, head, tail = room
    devices = len(slots)
    work[:] = 0
    head[:] = np.iinfo(np.int64).max
    tail[:] = np.iinfo(np.int64).max
    longest = 0
    for k in range(len(topological)):
        u = topological[k]
        d = device[u]
        ready = 0
        for j in range(inputs[u], inputs[u + 1]):
            m = input_tensors[j]
            made = producer[m]
            source = home[m] if made < 0 else device[made]
            come = 0 if made < 0 else end[made]
            if source != d:
                come += travel[m, source, d]
            ready = max(ready, come)
        spent = run_ns[u * devices + d]
        end[u] = ready + spent
        longest = max(longest, end[u] + tails[u])
        if spent > 0:
            work[d] += spent
            head[d] = min(head[d], ready)
            tail[d] = min(tail[d], tails[u])
    for d in range(devices):
        if work[d] > 0:
            longest = max(longest, head[d] + -(-work[d] // slots[d]) + tail[d])
    return longest


@njit(cache=True)
def _judge(packed, device, rank, strict, contention, outputs, memory, per_excess):  # type: ignore[no-untyped-def]
    """What a schedule is worth, its cost, and whether it fits."""
    data, starts = packed
    readers, waiting, sequence, order, offsets, no_order = strict[1:]
    if strict[0][0]:
        sequence_of(data, readers, waiting, rank, sequence)
        order_of(device, sequence, offsets, order)
        status = engine.run(data, starts, device, rank, offsets, order, contention, outputs)
    else:
        status = engine.run(data, starts, device, rank, no_order, order[:0], contention, outputs)
    if status != engine.FINISHED:
        return np.inf, np.inf, False
    cost = float(outputs[0][0])
    peak = outputs[10]
    excess = 0.0
    for d in range(len(memory)):
        if peak[d] > memory[d]:
            excess += (peak[d] - memory[d]) / memory[d]
    return cost + per_excess * excess + (excess > 0.0), cost, excess == 0.0


@njit(cache=True)
def walk_schedules(  # type: ignore[no-untyped-def]
    seed,
    steps,
    heats,
    weights,
    reorder,
    regions,
    packed,
    contention,
    memory,
    tables,
    bounding,
    strict,
    outputs,
    chosen,
    rank,
    best,
    best_rank,
    hot,
    counts,
):
    """Walk so many steps from `chosen` (a device per group) and `rank` (per unit), both moved along; returns the best.

    `best` and `best_rank` receive the best that fits into memory; inf is returned where nothing did. The temperature
    falls from `heats[0]` to `heats[1]` times the cost; `weights` are what a device's memory exceeded once over adds, as
    a share of the cost at the start, first and last. `tables` and `strict` are those of `GuidedSearch`, `hot` the
    groups that decide the cost. `counts[0]` grows by how many were simulated.
    """
    np.random.seed(seed)
    data = packed[0]
    topological, run_ns, travel, tails, slots = bounding[:5]
    graph = (
        packed[0][packed[1][at.INPUT_OFFSETS] : packed[1][at.INPUT_OFFSETS + 1]],
        packed[0][packed[1][at.INPUT_TENSORS] : packed[1][at.INPUT_TENSORS + 1]],
        packed[0][packed[1][at.TENSOR_PRODUCER] : packed[1][at.TENSOR_PRODUCER + 1]],
        packed[0][packed[1][at.TENSOR_HOME] : packed[1][at.TENSOR_HOME + 1]],
        slots,
    )
    units, devices, groups = data[0], data[2], len(chosen)
    unit_offsets, members, movable = tables[8], tables[9], tables[1]
    end_room = (
        np.zeros(units, dtype=np.int64),
        np.zeros(devices, dtype=np.int64),
        np.zeros(devices, dtype=np.int64),
        np.zeros(devices, dtype=np.int64),
    )
    journal = new_journal(groups)
    device = np.empty(units, dtype=np.int64)
    for g in range(groups):
        for k in range(unit_offsets[g], unit_offsets[g + 1]):
            device[members[k]] = chosen[g]
    by_rank = np.argsort(rank)
    position = np.empty(units, dtype=np.int64)
    for k in range(units):
        position[by_rank[k]] = k
    cost = _judge(packed, device, rank, strict, contention, outputs, memory, 0.0)[1]
    per_excess = weights[0] * cost
    level, cost, fits = _judge(packed, device, rank, strict, contention, outputs, memory, per_excess)
    least, found = level, np.inf
    if fits:
        found = cost
        best[:] = chosen
        best_rank[:] = rank
    heat = heats[0]
    cooling = (heats[1] / heats[0]) ** (16.0 / steps) if heats[0] > 0.0 else 1.0
    stiffer = (weights[1] / weights[0]) ** (16.0 / steps)
    for step in range(steps):
        if step % 16 == 15:
            heat *= cooling
            per_excess *= stiffer
        count, unit, was = 0, -1, 0
        for _ in range(2 if np.random.random() < TWICE else 1):
            if len(hot) and np.random.random() < HOT:
                first = hot[np.random.randint(len(hot))]
            else:
                first = movable[np.random.randint(len(movable))]
            if unit < 0 and np.random.random() < reorder:
                unit = members[unit_offsets[first] + np.random.randint(unit_offsets[first + 1] - unit_offsets[first])]
                was = rank[unit]
                reach = 2 + np.random.randint(1 + units // 4) if np.random.random() < 0.3 else 6
                place = position[unit] + np.random.randint(-reach, reach + 1)
                other = by_rank[max(0, min(units - 1, place))]
                if other != unit:
                    rank[unit] = rank[other] + (1 if place < position[unit] else -1)
            else:
                count = move(chosen, first, tables, devices, regions, journal, count)
        if count == 0 and (unit < 0 or rank[unit] == was):
            continue
        for k in range(count):
            g = journal[0][k]
            for i in range(unit_offsets[g], unit_offsets[g + 1]):
                device[members[i]] = journal[2][k]
        limit = level - heat * least * np.log(np.random.random()) if heat > 0.0 else level
        taken = False
        if count == 0 or least_ns(device, topological, run_ns, travel, graph, tails, end_room) <= limit:
            counts[0] += 1
            value, cost, fits = _judge(packed, device, rank, strict, contention, outputs, memory, per_excess)
            taken = value <= limit
        if taken:
            level = value
            least = min(least, value)
            if fits and cost < found:
                found = cost
                best[:] = chosen
                best_rank[:] = rank
            if unit >= 0:
                by_rank = np.argsort(rank)
                for k in range(units):
                    position[by_rank[k]] = k
            continue
        if unit >= 0:
            rank[unit] = was
        for k in range(count - 1, -1, -1):
            g = journal[0][k]
            for i in range(unit_offsets[g], unit_offsets[g + 1]):
                device[members[i]] = journal[1][k]
        undo(chosen, journal, count)
    return found
