"""Compiled loops of list scheduling: units are assigned one by one, each to a device, a slot and a start.

Imported lazily. Shapes: U units, D devices, M tensors, L links, T device types, G groups, S slots of all devices.
"""

import heapq
from typing import Any, NamedTuple

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.tables import compiled, internal, uncounted
from opmark.leaderboards.search.lists.travel import NEVER_NS

# Later than everything.
LAST = 2**62


class ListCosts(NamedTuple):
    """The graph, the links and all times, read only.

    `run_ns` is U×D, `hop_ns` tensor sizes×L, `boundary_ns` M×T; routes are rows of source · D + destination. Without
    `contention` a link carries any number of tensors at once.
    """

    run_ns: Integers
    input_offsets: Integers
    input_tensors: Integers
    tensor_producer: Integers
    tensor_home: Integers
    tensor_size_class: Integers
    route_offsets: Integers
    route_links: Integers
    link_port: Integers
    hop_ns: Integers
    boundary_ns: Integers
    device_type: Integers
    contention: int


class ListMemory(NamedTuple):
    """The group of each unit, the devices that may run a group (G×D), and the bytes that groups and devices hold.

    `device` is the device of each group, -1 as long as it has none.
    """

    group_of_unit: Integers
    allowed: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]"
    size_bytes: Integers
    memory_bytes: Integers
    held_bytes: Integers
    device: Integers


class SlotTimeline(NamedTuple):
    """The busy spans of every slot (S×U), sorted by start.

    Device d has the slots from `first_slot[d]` to `first_slot[d + 1]`; `filled` counts the spans of each slot.
    """

    first_slot: Integers
    filled: Integers
    start: Integers
    end: Integers
    unit: Integers


class Assignment(NamedTuple):
    """The assignment so far: `device` (-1: none), `start` and `end` per unit.

    `arrival` is M×D, -1 where a tensor was not sent. A port is busy until `port_free`; `trial_free` holds instead where
    `trial_mark` is the number of the current trial, `trial[0]`. `tensor` and `produced` are the inputs of one unit.
    """

    device: Integers
    start: Integers
    end: Integers
    arrival: Integers
    port_free: Integers
    trial_free: Integers
    trial_mark: Integers
    trial: Integers
    tensor: Integers
    produced: Integers


class ListTables(NamedTuple):
    """Everything that list scheduling reads and fills."""

    costs: ListCosts
    memory: ListMemory
    timeline: SlotTimeline
    assignment: Assignment


@internal(forceinline=True)
def sort_inputs(unit, tables):  # type: ignore[no-untyped-def]
    """List the inputs of `unit` in the order in which they are produced; returns their number."""
    costs, assignment = tables.costs, tables.assignment
    first = costs.input_offsets[unit]
    count = costs.input_offsets[unit + 1] - first
    for k in range(count):
        tensor = costs.input_tensors[first + k]
        producer = costs.tensor_producer[tensor]
        time = 0 if producer < 0 else assignment.end[producer]
        place = k
        while place > 0 and (
            assignment.produced[place - 1] > time
            or (assignment.produced[place - 1] == time and assignment.tensor[place - 1] > tensor)
        ):
            assignment.produced[place] = assignment.produced[place - 1]
            assignment.tensor[place] = assignment.tensor[place - 1]
            place -= 1
        assignment.produced[place], assignment.tensor[place] = time, tensor
    return count


@internal(forceinline=True)
def inputs_ready(count, device, send, tables):  # type: ignore[no-untyped-def]
    """The time at which the last of the `count` sorted inputs is on `device`; with `send` its transfers are kept."""
    costs, assignment = tables.costs, tables.assignment
    devices = costs.run_ns.shape[1]
    assignment.trial[0] += 1
    trial = assignment.trial[0]
    ready = 0
    for k in range(count):
        tensor, time = assignment.tensor[k], assignment.produced[k]
        producer = costs.tensor_producer[tensor]
        source = costs.tensor_home[tensor] if producer < 0 else assignment.device[producer]
        if source != device:
            if assignment.arrival[tensor, device] >= 0:
                time = assignment.arrival[tensor, device]
            else:
                first = costs.route_offsets[source * devices + device]
                last = costs.route_offsets[source * devices + device + 1] - 1
                if first > last:
                    time = NEVER_NS
                for hop in range(first, last + 1):
                    link = costs.route_links[hop]
                    port = costs.link_port[link]
                    duration = costs.hop_ns[costs.tensor_size_class[tensor], link]
                    if hop == first:
                        duration += costs.boundary_ns[tensor, costs.device_type[source]]
                    if hop == last:
                        duration += costs.boundary_ns[tensor, costs.device_type[device]]
                    if costs.contention:
                        in_trial = assignment.trial_mark[port] == trial
                        time = max(time, assignment.trial_free[port] if in_trial else assignment.port_free[port])
                        assignment.trial_free[port], assignment.trial_mark[port] = time + duration, trial
                        if send:
                            assignment.port_free[port] = time + duration
                    time += duration
                if send:
                    assignment.arrival[tensor, device] = time
        ready = max(ready, time)
    return ready


@uncounted(forceinline=True)
def earliest_gap(device, ready, duration, timeline):  # type: ignore[no-untyped-def]
    """The earliest start from `ready` on in an idle gap that is long enough (insertion), and the slot of the gap."""
    best: Any = np.int64(LAST)
    chosen: Any = np.int64(0)
    for slot in range(timeline.first_slot[device], timeline.first_slot[device + 1]):
        count = timeline.filled[slot]
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if timeline.start[slot, middle] <= ready:
                low = middle + 1
            else:
                high = middle
        start = ready
        for k in range(max(0, low - 1), count):
            if start + duration <= timeline.start[slot, k]:
                break
            start = max(start, timeline.end[slot, k])
        if start < best:
            best, chosen = start, slot
    return best, chosen


@uncounted(forceinline=True)
def earliest_free(device, timeline):  # type: ignore[no-untyped-def]
    """The time at which the first slot of a device has finished all its units, and that slot."""
    best: Any = np.int64(LAST)
    chosen: Any = np.int64(0)
    for slot in range(timeline.first_slot[device], timeline.first_slot[device + 1]):
        count = timeline.filled[slot]
        free = timeline.end[slot, count - 1] if count else 0
        if free < best:
            best, chosen = free, slot
    return best, chosen


@uncounted(forceinline=True)
def occupy(unit, slot, start, end, timeline):  # type: ignore[no-untyped-def]
    """Insert the span of `unit` into a slot, behind the spans that start and end no later."""
    place = timeline.filled[slot]
    while place > 0 and (
        timeline.start[slot, place - 1] > start
        or (timeline.start[slot, place - 1] == start and timeline.end[slot, place - 1] > end)
    ):
        timeline.start[slot, place] = timeline.start[slot, place - 1]
        timeline.end[slot, place] = timeline.end[slot, place - 1]
        timeline.unit[slot, place] = timeline.unit[slot, place - 1]
        place -= 1
    timeline.start[slot, place], timeline.end[slot, place], timeline.unit[slot, place] = start, end, unit
    timeline.filled[slot] += 1


@internal(forceinline=True)
def usable_devices(unit, memory, usable):  # type: ignore[no-untyped-def]
    """Fill `usable` with the devices for `unit`, and return their number.

    The device of the unit's group if it has one; else the devices with room for the group; else all that can run it.
    """
    group = memory.group_of_unit[unit]
    if memory.device[group] >= 0:
        usable[0] = memory.device[group]
        return 1
    found = 0
    for device in range(len(memory.memory_bytes)):
        fits = memory.held_bytes[device] + memory.size_bytes[group] <= memory.memory_bytes[device]
        if memory.allowed[group, device] and fits:
            usable[found] = device
            found += 1
    if found == 0:
        for device in range(len(memory.memory_bytes)):
            if memory.allowed[group, device]:
                usable[found] = device
                found += 1
    return found


@internal(forceinline=True)
def assign(unit, device, slot_and_start, inputs, tables):  # type: ignore[no-untyped-def]
    """Run `unit` on `device` in a slot from a start on: keep its group there and send it its `inputs`."""
    slot, start = slot_and_start
    memory, assignment = tables.memory, tables.assignment
    group = memory.group_of_unit[unit]
    if memory.device[group] < 0:
        memory.device[group] = device
        memory.held_bytes[device] += memory.size_bytes[group]
    inputs_ready(inputs, device, np.bool_(True), tables)
    end = start + tables.costs.run_ns[unit, device]
    assignment.device[unit], assignment.start[unit], assignment.end[unit] = device, start, end
    occupy(unit, slot, start, end, tables.timeline)


@compiled
def assign_by_earliest_finish(order, pinned, lookahead_ns, tables):  # type: ignore[no-untyped-def]
    """Assign the units in `order`, each to the device with the least finish time plus `lookahead_ns` (U×D).

    A unit goes to its `pinned` device (-1: none) if that is usable.
    """
    run_ns = tables.costs.run_ns
    usable = np.empty(run_ns.shape[1], dtype=np.int64)
    for unit in order:
        inputs = sort_inputs(unit, tables)
        # Of one type from the start: literals would compile `assign` once more.
        least, best, best_start, best_slot = LAST, np.int64(-1), np.int64(0), np.int64(0)
        for k in range(usable_devices(unit, tables.memory, usable)):
            device = usable[k]
            ready = inputs_ready(inputs, device, np.bool_(False), tables)
            start, slot = earliest_gap(device, ready, run_ns[unit, device], tables.timeline)
            finish = start + run_ns[unit, device] + lookahead_ns[unit, device]
            if pinned[unit] == device:
                finish = -1
            if finish < least:
                least, best, best_start, best_slot = finish, device, start, slot
        assign(unit, best, (best_slot, best_start), inputs, tables)


@compiled
def assign_by_earliest_start(rank, waiting, readers, reservations, tables):  # type: ignore[no-untyped-def]
    """Assign, again and again, the ready unit and the device with the earliest start.

    Ties go to the earlier finish, then to the higher `rank`. `waiting` counts the inputs that a unit still needs from
    other units, `readers` are compressed rows. `reservations` are a favourite reader per unit (-1: none) and a time
    in ns: so long after its last unit a device waits for that unit's favourite, and takes no other unit.
    """
    offsets, reader_units = readers
    favourite, reserved_ns = reservations
    run_ns, assignment = tables.costs.run_ns, tables.assignment
    usable = np.empty(run_ns.shape[1], dtype=np.int64)
    last = np.full(run_ns.shape[1], -1, dtype=np.int64)
    # Starts only become later, except once a favourite is assigned. An entry that is too early is renewed below.
    heap = [(0, 0, 0, 0, 0) for _ in range(0)]
    for unit in range(len(rank)):
        if waiting[unit] == 0:
            for k in range(usable_devices(unit, tables.memory, usable)):
                heapq.heappush(heap, (0, 0, -rank[unit], unit, usable[k]))
    while len(heap) > 0:
        known_start, known_finish, _, unit, device = heapq.heappop(heap)
        if assignment.device[unit] >= 0:
            continue
        still_usable = False
        count = usable_devices(unit, tables.memory, usable)
        for k in range(count):
            still_usable |= usable[k] == device
        if not still_usable:
            for k in range(count):
                heapq.heappush(heap, (known_start, known_start, -rank[unit], unit, usable[k]))
            continue
        inputs = sort_inputs(unit, tables)
        free, slot = earliest_free(device, tables.timeline)
        start = max(inputs_ready(inputs, device, np.bool_(False), tables), free)
        before = last[device]
        expected = favourite[before] if before >= 0 else -1
        if expected >= 0 and expected != unit and assignment.device[expected] < 0:
            start = max(start, assignment.end[before] + reserved_ns[before])
        finish = start + run_ns[unit, device]
        if start > known_start or finish > known_finish:
            heapq.heappush(heap, (start, finish, -rank[unit], unit, device))
            continue
        assign(unit, device, (slot, start), inputs, tables)
        last[device] = unit
        for k in range(offsets[unit], offsets[unit + 1]):
            reader = reader_units[k]
            waiting[reader] -= 1
            if waiting[reader] == 0:
                for j in range(usable_devices(reader, tables.memory, usable)):
                    heapq.heappush(heap, (finish, finish, -rank[reader], reader, usable[j]))
