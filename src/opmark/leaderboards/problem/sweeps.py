"""Compiled passes over a problem's graph. Imported lazily, when a problem is compiled or ranked."""

import numpy as np

from opmark.leaderboards.problem.tables import compiled, sizes_of, tables_of


@compiled("int64[::1](int64[::1], int64[::1])")
def topological_order(data, starts):  # type: ignore[no-untyped-def]
    """Units in an order that respects every tensor; shorter than the units if the graph has a cycle."""
    units = sizes_of(data).units
    of = tables_of(data, starts)
    waiting = np.empty(units, dtype=np.int64)
    for unit in range(units):
        waiting[unit] = of.input_offsets[unit + 1] - of.input_offsets[unit]
    for tensor in range(len(of.tensor_producer)):
        if of.tensor_producer[tensor] < 0:
            for k in range(of.consumer_offsets[tensor], of.consumer_offsets[tensor + 1]):
                waiting[of.consumer_units[k]] -= 1
    order = np.empty(units, dtype=np.int64)
    tail = 0
    for unit in range(units):
        if waiting[unit] == 0:
            order[tail] = unit
            tail += 1
    head = 0
    while head < tail:
        unit = order[head]
        head += 1
        for j in range(of.output_offsets[unit], of.output_offsets[unit + 1]):
            tensor = of.output_tensors[j]
            for k in range(of.consumer_offsets[tensor], of.consumer_offsets[tensor + 1]):
                reader = of.consumer_units[k]
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    order[tail] = reader
                    tail += 1
    return order[:tail].copy()


@compiled("int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def upward_rank(data, starts, topological, unit_ns, tensor_ns):  # type: ignore[no-untyped-def]
    """Per unit, the longest way to the end: its own time, then the largest sum of tensor time and reader's rank."""
    of = tables_of(data, starts)
    rank = np.zeros(len(topological), dtype=np.int64)
    for position in range(len(topological) - 1, -1, -1):
        unit = topological[position]
        longest = 0
        for j in range(of.output_offsets[unit], of.output_offsets[unit + 1]):
            tensor = of.output_tensors[j]
            for k in range(of.consumer_offsets[tensor], of.consumer_offsets[tensor + 1]):
                longest = max(longest, tensor_ns[tensor] + rank[of.consumer_units[k]])
        rank[unit] = unit_ns[unit] + longest
    return rank


@compiled("int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def returning_rows(data, starts, topological, forward, device):  # type: ignore[no-untyped-def]
    """1 per row of `device` (flat) in which a path over forward units leaves a device and returns to it, else 0."""
    units = sizes_of(data).units
    of = tables_of(data, starts)
    found = np.zeros(len(device) // units, dtype=np.int64)
    left = np.zeros(units, dtype=np.int64)
    for row in range(len(found)):
        place = device[row * units : (row + 1) * units]
        for position in range(units):
            unit = topological[position]
            left[unit] = 0
            if forward[unit] == 0:
                continue
            for k in range(of.input_offsets[unit], of.input_offsets[unit + 1]):
                before = of.tensor_producer[of.input_tensors[k]]
                if before >= 0 and forward[before] == 1:
                    left[unit] |= left[before]
                    if place[before] != place[unit]:
                        left[unit] |= np.int64(1) << place[before]
            if (left[unit] >> place[unit]) & 1:
                found[row] = 1
                break
    return found
