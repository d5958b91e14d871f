"""Compiled simulation of whole request traces. Imported lazily."""

# ruff: noqa: PLR0917 (compiled functions take flat arrays by position)

import numpy as np

from opmark.leaderboards.problem.tables import compiled
from opmark.leaderboards.simulator import engine


@compiled(no_cpython_wrapper=True)
def request_latencies(room, arrival_ns, units, tensors):  # type: ignore[no-untyped-def]
    """Per request, ns from its arrival until all its units and transfers have ended; `room` is that of `run`."""
    found = np.empty(len(arrival_ns), dtype=np.int64)
    for r in range(len(found)):
        last = arrival_ns[r]
        for u in range(units[r], units[r + 1]):
            last = max(last, room.unit_end[u])
        first_hop = room.hop_offsets[room.transfer_offsets[tensors[r]]]
        for hop in range(first_hop, room.hop_offsets[room.transfer_offsets[tensors[r + 1]]]):
            last = max(last, room.hop_end[hop])
        found[r] = last - arrival_ns[r]
    return found


@compiled
def run_requests(  # type: ignore[no-untyped-def]
    data, starts, device, priority, no_order, contention, room, peaks, requests, rank
):
    """Per row of `device` (rows x copies), the latency that `rank` requests do not exceed; INVALID where it fails.

    `priority` has one row or as many; `peaks` (rows x devices) receives bytes.
    """
    arrival_ns, units, tensors = requests
    costs = np.empty(len(device), dtype=np.int64)
    for row in range(len(costs)):
        urgency = priority[row if len(priority) > 1 else 0]
        status = engine.run(data, starts, device[row], urgency, no_order, no_order[:0], contention, room)
        costs[row] = engine.INVALID
        if status == engine.FINISHED:
            costs[row] = np.sort(request_latencies(room, arrival_ns, units, tensors))[rank - 1]
        for d in range(len(room.peak)):  # assigning a row would compile the text of its error
            peaks[row, d] = room.peak[d]
    return costs
