"""Compiled list scheduling: units put one by one, with insertion and an estimate of the links' queues.

Imported lazily by `built_schedule`. The rules are those of `list_schedule.ListSchedule`, which tests hold it against.
"""

# ruff: noqa: PLR0917 (compiled functions take flat arrays by position)

import heapq

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

NEVER = 2**50


@njit(cache=True, forceinline=True)
def sort_inputs(unit, tables, state):  # type: ignore[no-untyped-def]
    """Put the unit's inputs in the order in which they are made, whichever device reads them; how many there are."""
    input_offsets, input_tensors, producer = tables[:3]
    end, tensors, made = state[1], state[6], state[7]
    count = input_offsets[unit + 1] - input_offsets[unit]
    for k in range(count):
        tensor = input_tensors[input_offsets[unit] + k]
        maker = producer[tensor]
        time = 0 if maker < 0 else end[maker]
        place = k
        while place > 0 and (made[place - 1] > time or (made[place - 1] == time and tensors[place - 1] > tensor)):
            made[place], tensors[place] = made[place - 1], tensors[place - 1]
            place -= 1
        made[place], tensors[place] = time, tensor
    return count


@njit(cache=True, forceinline=True)
def arrivals(count, device, record, tables, state):  # type: ignore[no-untyped-def]
    """When the last of the `count` sorted inputs would be on `device`; with `record` its transfers are booked."""
    _, _, producer, home, route_offsets, route_links, link_port = tables[:7]
    hop_ns, size_class, boundary, device_type, sizes = tables[7:]
    placed, _, port_free, there, tried, tried_at, tensors, made = state
    devices, links, types, contention = sizes[0], sizes[1], sizes[2], sizes[3]
    tried_at[-1] += 1
    stamp = tried_at[-1]
    last = 0
    for k in range(count):
        tensor, time = tensors[k], made[k]
        source = home[tensor] if producer[tensor] < 0 else placed[producer[tensor]]
        if source != device:
            if there[tensor * devices + device] >= 0:
                time = there[tensor * devices + device]
            else:
                first, final = route_offsets[source * devices + device], route_offsets[source * devices + device + 1]
                if first == final:
                    time = NEVER
                for hop in range(first, final):
                    link = route_links[hop]
                    port = link_port[link]
                    duration = hop_ns[size_class[tensor] * links + link]
                    if hop == first:
                        duration += boundary[tensor * types + device_type[source]]
                    if hop == final - 1:
                        duration += boundary[tensor * types + device_type[device]]
                    if contention:
                        time = max(time, tried[port] if tried_at[port] == stamp else port_free[port])
                        tried[port], tried_at[port] = time + duration, stamp
                        if record:
                            port_free[port] = time + duration
                    time += duration
                if record:
                    there[tensor * devices + device] = time
        last = max(last, time)
    return last


@njit(cache=True, forceinline=True)
def gap(device, ready, duration, lines):  # type: ignore[no-untyped-def]
    """The earliest start not before `ready` in an idle gap long enough, and the slot that has it."""
    slot_base, count, busy_from, busy_to, units = lines
    width = len(units) // len(count)
    best, chosen = 2**62, 0
    for slot in range(slot_base[device], slot_base[device + 1]):
        base = slot * width
        low, high = 0, count[slot]
        while low < high:
            middle = (low + high) // 2
            if busy_from[base + middle] <= ready:
                low = middle + 1
            else:
                high = middle
        start = ready
        for k in range(max(0, low - 1), count[slot]):
            if start + duration <= busy_from[base + k]:
                break
            start = max(start, busy_to[base + k])
        if start < best:
            best, chosen = start, slot
    return best, chosen


@njit(cache=True, forceinline=True)
def book(unit, slot, start, end, lines):  # type: ignore[no-untyped-def]
    """Put the unit's span into a slot's line, after all that start and end no later."""
    _, count, busy_from, busy_to, units = lines
    base = slot * (len(units) // len(count))
    place = count[slot]
    while place > 0 and (
        busy_from[base + place - 1] > start
        or (busy_from[base + place - 1] == start and busy_to[base + place - 1] > end)
    ):
        busy_from[base + place] = busy_from[base + place - 1]
        busy_to[base + place] = busy_to[base + place - 1]
        units[base + place] = units[base + place - 1]
        place -= 1
    busy_from[base + place], busy_to[base + place], units[base + place] = start, end, unit
    count[slot] += 1


@njit(cache=True, forceinline=True)
def may_use(unit, room, choice):  # type: ignore[no-untyped-def]
    """Fill `choice` with the devices the unit's class may use, and say how many: where it is, else where it fits."""
    group, allowed, size, memory, held, decided = room
    devices = len(memory)
    own = group[unit]
    if decided[own] >= 0:
        choice[0] = decided[own]
        return 1
    found = 0
    for device in range(devices):
        if allowed[own * devices + device] and held[device] + size[own] <= memory[device]:
            choice[found] = device
            found += 1
    if found == 0:
        for device in range(devices):
            if allowed[own * devices + device]:
                choice[found] = device
                found += 1
    return found


@njit(cache=True, forceinline=True)
def settle(unit, device, room):  # type: ignore[no-untyped-def]
    """The unit's class is on `device` from now on."""
    group, _, size, _, held, decided = room
    if decided[group[unit]] < 0:
        decided[group[unit]] = device
        held[device] += size[group[unit]]


@njit(cache=True)
def in_sequence(sequence, forced, run_ns, ahead, tables, state, room, lines, start):  # type: ignore[no-untyped-def]
    """Every unit of `sequence` where its end plus what must follow (`ahead`, U×D) is least, or where it is `forced`."""
    placed, end = state[0], state[1]
    devices = len(room[3])
    choice = np.empty(devices, dtype=np.int64)
    for unit in sequence:
        count = sort_inputs(unit, tables, state)
        best, chosen, begun, slot = 2**62, -1, 0, 0
        for k in range(may_use(unit, room, choice)):
            device = choice[k]
            ready = arrivals(count, device, False, tables, state)
            first, line = gap(device, ready, run_ns[unit * devices + device], lines)
            value = first + run_ns[unit * devices + device] + ahead[unit * devices + device]
            if forced[unit] == device:
                value = -1
            if value < best:
                best, chosen, begun, slot = value, device, first, line
        settle(unit, chosen, room)
        arrivals(count, chosen, True, tables, state)
        placed[unit], start[unit], end[unit] = chosen, begun, begun + run_ns[unit * devices + chosen]
        book(unit, slot, begun, end[unit], lines)


@njit(cache=True, forceinline=True)
def last_free(device, lines):  # type: ignore[no-untyped-def]
    """When the first slot of a device has nothing more to do, and that slot."""
    slot_base, count, _, busy_to, units = lines
    width = len(units) // len(count)
    best, chosen = 2**62, 0
    for slot in range(slot_base[device], slot_base[device + 1]):
        free = busy_to[slot * width + count[slot] - 1] if count[slot] else 0
        if free < best:
            best, chosen = free, slot
    return best, chosen


@njit(cache=True)
def earliest_first(rank, waiting, readers, favourite, wake_ns, run_ns, tables, state, room, lines, start):  # type: ignore[no-untyped-def]
    """Again and again the ready unit and device that can start first; ties by earliest end, then by falling `rank`.

    A device whose last unit has a `favourite` reader (a unit, or -1) takes no other before `wake_ns` after that unit's
    end, as long as the favourite waits.
    """
    reader_offsets, reader_units = readers
    placed, end = state[0], state[1]
    devices = len(room[3])
    choice = np.empty(devices, dtype=np.int64)
    last = np.full(devices, -1, dtype=np.int64)
    # a start can only become later, except where a favourite was placed: such entries are renewed below
    heap = [(0, 0, 0, 0, 0) for _ in range(0)]
    for unit in range(len(rank)):
        if waiting[unit] == 0:
            for k in range(may_use(unit, room, choice)):
                heapq.heappush(heap, (0, 0, -rank[unit], unit, choice[k]))
    while len(heap) > 0:
        key, finish, _, unit, device = heapq.heappop(heap)
        if placed[unit] >= 0:
            continue
        able = False
        count = may_use(unit, room, choice)
        for k in range(count):
            able |= choice[k] == device
        if not able:
            # its class went elsewhere, or the room is gone
            for k in range(count):
                heapq.heappush(heap, (key, key, -rank[unit], unit, choice[k]))
            continue
        inputs = sort_inputs(unit, tables, state)
        begun = max(arrivals(inputs, device, False, tables, state), last_free(device, lines)[0])
        before = last[device]
        if before >= 0 and favourite[before] >= 0 and favourite[before] != unit and placed[favourite[before]] < 0:
            begun = max(begun, end[before] + wake_ns[before])
        done = begun + run_ns[unit * devices + device]
        if begun > key or done > finish:
            heapq.heappush(heap, (begun, done, -rank[unit], unit, device))
            continue
        settle(unit, device, room)
        arrivals(inputs, device, True, tables, state)
        _, slot = last_free(device, lines)
        placed[unit], start[unit], end[unit] = device, begun, done
        book(unit, slot, begun, done, lines)
        last[device] = unit
        for k in range(reader_offsets[unit], reader_offsets[unit + 1]):
            reader = reader_units[k]
            waiting[reader] -= 1
            if waiting[reader] == 0:
                for j in range(may_use(reader, room, choice)):
                    heapq.heappush(heap, (done, done, -rank[reader], reader, choice[j]))
