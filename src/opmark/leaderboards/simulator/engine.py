"""opsim 1, compiled: integer time, one core, no Python objects. Imported lazily by `simulator`.

All arrays are flat int64, so that there is one signature and a call costs microseconds. The rule numbers in comments
are those of the simulator's reference page.
"""

# ruff: noqa: PLR0917, PLR0915 (compiled functions take flat arrays by position, and an event loop is one function)

from typing import Any

import numpy as np

from opmark.leaderboards.problem.compile_cache import runs_uncompiled
from opmark.leaderboards.problem.packing import Room
from opmark.leaderboards.problem.tables import compiled, sizes_of, tables_of
from opmark.leaderboards.simulator.queues import (
    deliver,
    enter,
    leave,
    leaving_ns,
    multicast_ns,
    pop,
    push,
    release,
    rescale,
    send,
    settle,
)

FINISHED = 0
NO_ROUTE = 1
UNSUPPORTED = 2
STUCK = 3
INVALID = np.iinfo(np.int64).max


def _signatures() -> tuple[Any, Any]:
    """The types of `run` and `run_many`; nothing in plain Python."""
    if runs_uncompiled():
        return None, None
    from numba import int64
    from numba.types import NamedUniTuple  # type: ignore[attr-defined]

    flat = int64[::1]
    taken = (*[flat] * 6, int64, NamedUniTuple(flat, len(Room._fields), Room))
    return int64(*taken), flat(*taken, flat)


_RUN, _RUN_MANY = _signatures()


@compiled(_RUN)
def run(data, starts, device, priority, order_offsets, order_units, contention, room):  # type: ignore[no-untyped-def]
    """Simulate one placement into the arrays of `room`, and return a status.

    `device` and `priority` are per unit; a row of `order_units` per device, empty where the device is free to choose.
    Requests are rows of units and tensors that arrive at their time; one pass is one request.
    """
    info, unit_start, unit_end, transfer_offsets, transfer_tensor, transfer_destination = room[:6]
    hop_offsets, hop_link, hop_start, hop_end, peak = room[6:]
    units, tensors, devices, types, links, ports, host, liveness, classes, multicast, fifo, stay = sizes_of(data)
    of = tables_of(data, starts)
    free_slots = of.device_slots.copy()
    # Slots that an arriving transfer holds (rule 5).
    held_by_arrival = of.device_blocking | of.device_copying

    # What each unit waits for; the bytes that each device holds before anything runs (rule 8).
    resident = np.zeros(devices, dtype=np.int64)
    pending = np.empty(units, dtype=np.int64)
    ready_base = np.zeros(devices + 1, dtype=np.int64)
    slot_base = np.zeros(devices + 1, dtype=np.int64)
    for d in range(devices):
        slot_base[d + 1] = slot_base[d] + free_slots[d]
    slots = slot_base[devices]
    stamp = 0 if fifo else -1
    if fifo:
        priority = np.zeros(units, dtype=np.int64)
    here = np.zeros(len(of.weight_bytes) * devices, dtype=np.uint8)
    for u in range(units):
        d = device[u]
        if of.exec_ns[u * types + of.device_type[d]] < 0:
            info[3], info[4] = u, d
            return UNSUPPORTED
        pending[u] = max(
            1, of.input_offsets[u + 1] - of.input_offsets[u]
        )  # a unit without inputs waits for its request
        ready_base[d + 1] += 1
        resident[d] += settle(u, d, devices, of.weight_offsets, of.weight_ids, of.weight_bytes, here)
        if not liveness:
            resident[d] += of.workspace_bytes[u]
    for d in range(devices):
        ready_base[d + 1] += ready_base[d]

    # One transfer per tensor and destination (rule 5), its priority that of its dearest reader (rule 6).
    # A copy has one reference per local reader, per outgoing transfer, and where outputs stay on the host for that.
    source_refs = np.empty(tensors, dtype=np.int64)
    transfer_refs = np.empty(len(transfer_tensor), dtype=np.int64)
    urgency = np.empty(len(transfer_tensor), dtype=np.int64)
    link_base = np.zeros(links + 1, dtype=np.int64)
    seen = np.full(devices, -1, dtype=np.int64)
    dearest = np.empty(devices, dtype=np.int64)
    readers = np.empty(devices, dtype=np.int64)
    bus = np.full(devices, -1, dtype=np.int64)
    for e in range(links - 1, -1, -1):
        bus[of.link_source[e]] = e
    transfers = 0
    hops = 0
    request = 0
    for m in range(tensors):
        while m >= of.request_tensors[request + 1]:
            request += 1
        source = of.tensor_home[m] if of.tensor_producer[m] < 0 else device[of.tensor_producer[m]]
        references = 0
        remote = False
        transfer_offsets[m] = transfers
        for k in range(of.consumer_offsets[m], of.consumer_offsets[m + 1]):
            d = device[of.consumer_units[k]]
            if d == source:
                references += 1
            else:
                remote = True
                if seen[d] != m:
                    seen[d] = m
                    dearest[d] = of.request_urgency[request]
                    readers[d] = 0
                dearest[d] = max(dearest[d], priority[of.consumer_units[k]])
                readers[d] += 1
        if of.tensor_output[m]:
            if source == host:
                references += stay
            else:
                remote = True
                if seen[host] != m:
                    seen[host] = m
                    dearest[host] = of.request_urgency[request]
                    readers[host] = 0
                readers[host] += stay
        if remote:
            for d in range(devices):
                if seen[d] == m:
                    route = source * devices + d
                    if of.route_offsets[route] == of.route_offsets[route + 1]:
                        info[3], info[4] = m, d
                        return NO_ROUTE
                    transfer_tensor[transfers] = m
                    transfer_destination[transfers] = d
                    transfer_refs[transfers] = readers[d]
                    urgency[transfers] = dearest[d]
                    hop_offsets[transfers] = hops
                    if multicast:
                        if transfers == transfer_offsets[m]:
                            hop_link[hops] = bus[source]
                            link_base[bus[source] + 1] += 1
                            hops += 1
                    else:
                        for k in range(of.route_offsets[route], of.route_offsets[route + 1]):
                            hop_link[hops] = of.route_links[k]
                            link_base[of.route_links[k] + 1] += 1
                            hops += 1
                    references += 1
                    transfers += 1
        source_refs[m] = references
        if not liveness:
            resident[source] += of.tensor_bytes[m]
    transfer_offsets[tensors] = transfers
    hop_offsets[transfers] = hops
    for e in range(links):
        link_base[e + 1] += link_base[e]
    for d in range(devices):
        peak[d] = 0

    ready = np.empty(units, dtype=np.int64)
    ready_size = np.zeros(devices, dtype=np.int64)
    next_in_order = order_offsets[:-1].copy()
    waiting = np.empty(hops, dtype=np.int64)
    waiting_size = np.zeros(links, dtype=np.int64)
    port_busy = np.zeros(ports, dtype=np.uint8)
    at_hop = hop_offsets[:transfers].copy()
    # Events are numbered kernels first, then transfers, then arrivals (rule 7); the key is minus their time.
    events = np.empty(min(slots, units) + transfers + len(of.release_ns), dtype=np.int64)
    events_size = 0
    event_key = np.empty(units + transfers + len(of.release_ns), dtype=np.int64)
    # What shares the slots of each device, and how much slower than alone, in millionths (rule 3).
    running = np.empty(slots if classes else 0, dtype=np.int64)
    running_size = np.zeros(devices if classes else 0, dtype=np.int64)
    factor = np.empty(units if classes else 0, dtype=np.int64)
    changed = np.zeros(devices if classes else 0, dtype=np.uint8)

    readers_of = of.consumer_offsets, of.consumer_units, device, pending, ready, ready_base, ready_size, priority
    queues = transfer_offsets, hop_offsets, hop_link, waiting, link_base, waiting_size, urgency
    for r in range(len(of.release_ns)):
        event_key[units + transfers + r] = -of.release_ns[r]
        push(events, 0, events_size, units + transfers + r, event_key)
        events_size += 1
    time = np.int64(0)  # a literal would compile `rescale` once more
    done = 0
    while True:
        while events_size > 0 and -event_key[events[0]] == time:
            code = pop(events, 0, events_size, event_key)
            events_size -= 1
            if code < units:
                d = device[code]
                done += 1
                free_slots[d] += 1
                if classes and unit_end[code] > unit_start[code]:
                    leave(code, d, running, slot_base, running_size, changed)
                if liveness:
                    inputs = of.input_tensors[of.input_offsets[code] : of.input_offsets[code + 1]]
                    copies = transfer_offsets, transfer_destination, transfer_refs, source_refs
                    resident[d] -= of.workspace_bytes[code] + release(inputs, d, copies, of.tensor_bytes)
                for k in range(of.output_offsets[code], of.output_offsets[code + 1]):
                    m = of.output_tensors[k]
                    deliver(m, d, readers_of, stamp)
                    send(m, queues, stamp)
                    if liveness and source_refs[m] == 0:
                        resident[d] -= of.tensor_bytes[m]
                continue
            t = code - units
            if t >= transfers:
                r = t - transfers
                for u in range(of.request_units[r], of.request_units[r + 1]):
                    if of.input_offsets[u] == of.input_offsets[u + 1]:
                        pending[u] = 0
                        if fifo:
                            priority[u] = -time
                        push(ready, ready_base[device[u]], ready_size[device[u]], u, priority)
                        ready_size[device[u]] += 1
                for m in range(of.request_tensors[r], of.request_tensors[r + 1]):
                    if of.tensor_producer[m] < 0:
                        if liveness and source_refs[m] > 0:
                            resident[of.tensor_home[m]] += of.tensor_bytes[m]
                        deliver(m, of.tensor_home[m], readers_of, stamp)
                        send(m, queues, stamp)
                continue
            hop = at_hop[t]
            e = hop_link[hop]
            at_hop[t] = hop + 1
            if contention:
                port_busy[of.link_port[e]] = 0
                free_slots[of.link_source[e]] += of.device_blocking[of.link_source[e]]
                if not multicast:
                    free_slots[of.link_destination[e]] += held_by_arrival[of.link_destination[e]]
                    port_busy[of.link_second_port[e]] = 0
            if hop + 1 < hop_offsets[t + 1]:
                e = hop_link[hop + 1]
                push(waiting, link_base[e], waiting_size[e], t, urgency)
                waiting_size[e] += 1
                continue
            m = transfer_tensor[t]
            last = transfer_offsets[m + 1] if multicast else t + 1
            for arrived in range(t, last):
                d = transfer_destination[arrived]
                deliver(m, d, readers_of, stamp)
                source_refs[m] -= 1
                if liveness and transfer_refs[arrived] == 0:
                    resident[d] -= of.tensor_bytes[m]
            if liveness and source_refs[m] == 0:
                resident[of.tensor_home[m] if of.tensor_producer[m] < 0 else device[of.tensor_producer[m]]] -= (
                    of.tensor_bytes[m]
                )

        for e in range(links):
            while waiting_size[e] > 0:
                a = of.link_source[e]
                b = of.link_destination[e]
                if contention:
                    if port_busy[of.link_port[e]] or free_slots[a] < of.device_blocking[a]:
                        break
                    if not multicast:
                        if free_slots[b] < held_by_arrival[b] or port_busy[of.link_second_port[e]]:
                            break
                        free_slots[b] -= held_by_arrival[b]
                        port_busy[of.link_second_port[e]] = 1
                    port_busy[of.link_port[e]] = 1
                    free_slots[a] -= of.device_blocking[a]
                t = pop(waiting, link_base[e], waiting_size[e], urgency)
                waiting_size[e] -= 1
                hop = at_hop[t]
                m = transfer_tensor[t]
                duration = of.hop_ns[of.tensor_size_class[m] * links + e]
                if multicast:
                    duration = multicast_ns(
                        a,
                        transfer_destination[t : transfer_offsets[m + 1]],
                        of.boundary_ns[m * types : (m + 1) * types],
                        of.device_type,
                        of.route_offsets,
                        of.route_links,
                        of.hop_ns[of.tensor_size_class[m] * links : (of.tensor_size_class[m] + 1) * links],
                    )
                    for other in range(t, transfer_offsets[m + 1]):
                        resident[transfer_destination[other]] += of.tensor_bytes[m] if liveness else 0
                elif hop == hop_offsets[t]:
                    if not (of.device_copying[a] and of.tensor_producer[m] >= 0):
                        duration += of.boundary_ns[m * types + of.device_type[a]]
                    if liveness:
                        resident[transfer_destination[t]] += of.tensor_bytes[m]
                if not multicast and hop + 1 == hop_offsets[t + 1]:
                    duration += of.boundary_ns[m * types + of.device_type[b]]
                hop_start[hop] = time
                hop_end[hop] = time + duration
                event_key[units + t] = -(time + duration)
                push(events, 0, events_size, units + t, event_key)
                events_size += 1

        for d in range(devices):
            strict = order_offsets[d + 1] > order_offsets[d]
            while free_slots[d] > 0:
                if strict:
                    if next_in_order[d] == order_offsets[d + 1] or pending[order_units[next_in_order[d]]] > 0:
                        break
                    u = order_units[next_in_order[d]]
                    next_in_order[d] += 1
                elif ready_size[d] > 0:
                    u = pop(ready, ready_base[d], ready_size[d], priority)
                    ready_size[d] -= 1
                else:
                    break
                duration = of.exec_ns[u * types + of.device_type[d]]
                if duration > 0:
                    duration += of.device_dispatch_ns[d]
                if of.device_copying[d] and not multicast:
                    outputs = of.output_tensors[of.output_offsets[u] : of.output_offsets[u + 1]]
                    duration += leaving_ns(outputs, of.device_type[d], types, transfer_offsets, of.boundary_ns)
                free_slots[d] -= 1
                unit_start[u] = time
                unit_end[u] = time + duration
                event_key[u] = -(time + duration)
                push(events, 0, events_size, u, event_key)
                events_size += 1
                if classes and duration > 0:
                    enter(u, d, running, slot_base, running_size, factor, changed)
                if liveness:
                    resident[d] += of.workspace_bytes[u]
                    for k in range(of.output_offsets[u], of.output_offsets[u + 1]):
                        resident[d] += of.tensor_bytes[of.output_tensors[k]]

        if events_size > 0 and -event_key[events[0]] == time:
            continue
        # Buffers live from alloc up to free, so what starts and ends in one instant never counts (rule 8).
        for d in range(devices):
            peak[d] = max(peak[d], resident[d])
        if events_size == 0:
            break
        if classes and rescale(
            time,
            running,
            slot_base,
            running_size,
            factor,
            changed,
            classes,
            of.unit_class,
            of.interference,
            of.device_type,
            unit_end,
            event_key,
        ):
            for k in range(events_size):
                push(events, 0, k, events[k], event_key)
        time = -event_key[events[0]]
        if fifo:
            stamp = time
    info[0], info[1], info[2] = time, transfers, hops
    return FINISHED if done == units else STUCK


@compiled(_RUN_MANY)
def run_many(data, starts, device, priority, order_offsets, order_units, contention, room, peaks):  # type: ignore[no-untyped-def]
    """Simulate the rows of `device` (flat); one row of `priority` serves all, or each has its own.

    Returns a cost per row, `INVALID` if the placement cannot run; `peaks` receives bytes per row and device.
    """
    size = sizes_of(data)
    units, devices = size.units, size.devices
    costs = np.empty(len(device) // units, dtype=np.int64)
    shared = len(priority) == units
    for row in range(len(costs)):
        chosen = device[row * units : (row + 1) * units]
        urgency = priority if shared else priority[row * units : (row + 1) * units]
        status = run(data, starts, chosen, urgency, order_offsets, order_units, contention, room)
        costs[row] = room.info[0] if status == FINISHED else INVALID
        for d in range(devices):  # assigning all at once would compile the text of its error
            peaks[row * devices + d] = room.peak[d]
    return costs
