"""Compiled passes over rows of placements: pipeline bottlenecks and stashed memory. Imported lazily."""

# ruff: noqa: PLR0917, PLR0915 (compiled functions take flat arrays by position, and unpack them)

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

from opmark.leaderboards.problem import packing as at


@njit("int64[:, ::1](int64[::1], int64[::1], int64[::1], int64)", cache=True)
def server_rows(data, starts, device, contention):  # type: ignore[no-untyped-def]
    """Per row of `device` (flat), ns per sample of each device (rounded up), then of each port; needs routes."""
    units, tensors, devices, types, links = data[0], data[1], data[2], data[3], data[4]
    ports, host = data[5], data[6]
    exec_ns = data[starts[at.EXEC_NS] : starts[at.EXEC_NS + 1]]
    producer = data[starts[at.TENSOR_PRODUCER] : starts[at.TENSOR_PRODUCER + 1]]
    home = data[starts[at.TENSOR_HOME] : starts[at.TENSOR_HOME + 1]]
    output = data[starts[at.TENSOR_OUTPUT] : starts[at.TENSOR_OUTPUT + 1]]
    size_class = data[starts[at.TENSOR_SIZE_CLASS] : starts[at.TENSOR_SIZE_CLASS + 1]]
    consumers = data[starts[at.CONSUMER_OFFSETS] : starts[at.CONSUMER_OFFSETS + 1]]
    consumer_units = data[starts[at.CONSUMER_UNITS] : starts[at.CONSUMER_UNITS + 1]]
    boundary = data[starts[at.BOUNDARY] : starts[at.BOUNDARY + 1]]
    kind = data[starts[at.DEVICE_TYPE] : starts[at.DEVICE_TYPE + 1]]
    slots = data[starts[at.DEVICE_SLOTS] : starts[at.DEVICE_SLOTS + 1]]
    dispatch = data[starts[at.DISPATCH] : starts[at.DISPATCH + 1]]
    blocking = data[starts[at.BLOCKING] : starts[at.BLOCKING + 1]]
    link_source = data[starts[at.LINK_SOURCE] : starts[at.LINK_SOURCE + 1]]
    link_destination = data[starts[at.LINK_DESTINATION] : starts[at.LINK_DESTINATION + 1]]
    link_port = data[starts[at.LINK_PORT] : starts[at.LINK_PORT + 1]]
    route_offsets = data[starts[at.ROUTE_OFFSETS] : starts[at.ROUTE_OFFSETS + 1]]
    route_links = data[starts[at.ROUTE_LINKS] : starts[at.ROUTE_LINKS + 1]]
    hop_ns = data[starts[at.HOP_NS] : starts[at.HOP_NS + 1]]
    found = np.zeros((len(device) // units, devices + ports), dtype=np.int64)
    load = np.empty(devices, dtype=np.int64)
    port = np.empty(ports, dtype=np.int64)
    seen = np.empty(devices, dtype=np.int64)
    for row in range(len(found)):
        place = device[row * units : (row + 1) * units]
        load[:] = 0
        port[:] = 0
        seen[:] = -1
        for u in range(units):
            duration = exec_ns[u * types + kind[place[u]]]
            load[place[u]] += duration + dispatch[place[u]] if duration > 0 else 0
        for m in range(tensors):
            source = home[m] if producer[m] < 0 else place[producer[m]]
            readers = consumers[m + 1] - consumers[m]
            for k in range(readers + output[m]):
                d = place[consumer_units[consumers[m] + k]] if k < readers else host
                if d == source or seen[d] == m:
                    continue
                seen[d] = m
                first = route_offsets[source * devices + d]
                last = route_offsets[source * devices + d + 1]
                for hop in range(first, last):
                    e = route_links[hop]
                    duration = hop_ns[size_class[m] * links + e]
                    if hop == first:
                        duration += boundary[m * types + kind[source]]
                    if hop == last - 1:
                        duration += boundary[m * types + kind[d]]
                    if contention:
                        port[link_port[e]] += duration
                        load[link_source[e]] += duration * blocking[link_source[e]]
                        load[link_destination[e]] += duration * blocking[link_destination[e]]
        for d in range(devices):
            found[row, d] = -(-load[d] // slots[d])
        for p in range(ports):
            found[row, devices + p] = port[p]
    return found


@njit("int64[::1](int64[::1], int64[::1], int64[::1], int64)", cache=True)
def bottleneck_rows(data, starts, device, contention):  # type: ignore[no-untyped-def]
    """Per row of `device` (flat), ns per sample of the busiest device or port, rounded up; rows must have routes."""
    servers = server_rows(data, starts, device, contention)
    found = np.zeros(len(servers), dtype=np.int64)
    for row in range(len(servers)):
        found[row] = servers[row].max()
    return found


@njit("int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)", cache=True)
def stash_rows(data, starts, device, replicas, forward, micro_batches):  # type: ignore[no-untyped-def]
    """Peak bytes per row and device when every sample in flight keeps its forward tensors.

    A device keeps as many samples as there are devices from it to the end of the pipeline, by turns with its
    `replicas` (a count per device), at most `micro_batches` (0: no limit). `forward` is 1 for forward units.
    """
    units, tensors, devices = data[0], data[1], data[2]
    workspace = data[starts[at.WORKSPACE] : starts[at.WORKSPACE + 1]]
    producer = data[starts[at.TENSOR_PRODUCER] : starts[at.TENSOR_PRODUCER + 1]]
    home = data[starts[at.TENSOR_HOME] : starts[at.TENSOR_HOME + 1]]
    output = data[starts[at.TENSOR_OUTPUT] : starts[at.TENSOR_OUTPUT + 1]]
    size = data[starts[at.TENSOR_BYTES] : starts[at.TENSOR_BYTES + 1]]
    host = data[6]
    consumers = data[starts[at.CONSUMER_OFFSETS] : starts[at.CONSUMER_OFFSETS + 1]]
    consumer_units = data[starts[at.CONSUMER_UNITS] : starts[at.CONSUMER_UNITS + 1]]
    weight_offsets = data[starts[at.WEIGHT_OFFSETS] : starts[at.WEIGHT_OFFSETS + 1]]
    weight_ids = data[starts[at.WEIGHT_IDS] : starts[at.WEIGHT_IDS + 1]]
    weight_bytes = data[starts[at.WEIGHT_BYTES] : starts[at.WEIGHT_BYTES + 1]]
    rows = len(device) // units
    found = np.zeros(rows * devices, dtype=np.int64)
    seen = np.empty(devices, dtype=np.int64)
    for row in range(rows):
        place = device[row * units : (row + 1) * units]
        reach = np.zeros((devices, devices), dtype=np.uint8)
        used = np.zeros(devices, dtype=np.uint8)
        here = np.zeros(len(weight_bytes) * devices, dtype=np.uint8)
        fixed = np.zeros(devices, dtype=np.int64)
        each = np.zeros(devices, dtype=np.int64)
        work = np.zeros(devices, dtype=np.int64)
        for u in range(units):
            d = place[u]
            used[d] = 1
            work[d] = max(work[d], workspace[u])
            for k in range(weight_offsets[u], weight_offsets[u + 1]):
                if here[weight_ids[k] * devices + d] == 0:
                    here[weight_ids[k] * devices + d] = 1
                    fixed[d] += weight_bytes[weight_ids[k]]
        seen[:] = -1
        for m in range(tensors):
            source = home[m] if producer[m] < 0 else place[producer[m]]
            kept = producer[m] < 0 or forward[producer[m]] == 1
            seen[source] = m
            if kept:
                each[source] += size[m]
            else:
                fixed[source] += size[m]
            readers = consumers[m + 1] - consumers[m]
            for k in range(readers + output[m]):
                d = place[consumer_units[consumers[m] + k]] if k < readers else host
                if k < readers and producer[m] >= 0 and kept and forward[consumer_units[consumers[m] + k]] == 1:
                    reach[source, d] = 1
                if seen[d] != m:
                    seen[d] = m
                    if kept:
                        each[d] += size[m]
                    else:
                        fixed[d] += size[m]
        for d in range(devices):
            reach[d, d] = 1
        for middle in range(devices):
            for a in range(devices):
                if reach[a, middle]:
                    for b in range(devices):
                        reach[a, b] |= reach[middle, b]
        for d in range(devices):
            behind = 0
            for other in range(devices):
                if reach[d, other] and used[other]:
                    behind += replicas[other]
            flying = max(1, -(-behind // replicas[d]))
            if micro_batches > 0:
                flying = min(flying, micro_batches)
            found[row * devices + d] = fixed[d] + flying * each[d] + work[d]
    return found


@njit("int64[::1](int64[::1], int64[::1], int64[::1])", cache=True)
def sum_rows(data, starts, device):  # type: ignore[no-untyped-def]
    """Bytes per row and device when nothing is ever freed: weights, workspaces, and tensors where they are made."""
    units, tensors, devices = data[0], data[1], data[2]
    workspace = data[starts[at.WORKSPACE] : starts[at.WORKSPACE + 1]]
    producer = data[starts[at.TENSOR_PRODUCER] : starts[at.TENSOR_PRODUCER + 1]]
    home = data[starts[at.TENSOR_HOME] : starts[at.TENSOR_HOME + 1]]
    size = data[starts[at.TENSOR_BYTES] : starts[at.TENSOR_BYTES + 1]]
    weight_offsets = data[starts[at.WEIGHT_OFFSETS] : starts[at.WEIGHT_OFFSETS + 1]]
    weight_ids = data[starts[at.WEIGHT_IDS] : starts[at.WEIGHT_IDS + 1]]
    weight_bytes = data[starts[at.WEIGHT_BYTES] : starts[at.WEIGHT_BYTES + 1]]
    rows = len(device) // units
    found = np.zeros(rows * devices, dtype=np.int64)
    here = np.full(len(weight_bytes) * devices, -1, dtype=np.int64)
    for row in range(rows):
        for u in range(units):
            d = device[row * units + u]
            found[row * devices + d] += workspace[u]
            for k in range(weight_offsets[u], weight_offsets[u + 1]):
                if here[weight_ids[k] * devices + d] != row:
                    here[weight_ids[k] * devices + d] = row
                    found[row * devices + d] += weight_bytes[weight_ids[k]]
        for m in range(tensors):
            d = home[m] if producer[m] < 0 else device[row * units + producer[m]]
            found[row * devices + d] += size[m]
    return found


@njit(
    "UniTuple(int64[::1], 2)(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
    cache=True,
)
def serial_rows(data, starts, run_ns, out, into, device):  # type: ignore[no-untyped-def]
    """Load per row and device, in ns, and the part of it that is for taking in; `out` and `into` are M×D prices."""
    units, tensors, devices, host = data[0], data[1], data[2], data[6]
    producer = data[starts[at.TENSOR_PRODUCER] : starts[at.TENSOR_PRODUCER + 1]]
    home = data[starts[at.TENSOR_HOME] : starts[at.TENSOR_HOME + 1]]
    output = data[starts[at.TENSOR_OUTPUT] : starts[at.TENSOR_OUTPUT + 1]]
    consumers = data[starts[at.CONSUMER_OFFSETS] : starts[at.CONSUMER_OFFSETS + 1]]
    consumer_units = data[starts[at.CONSUMER_UNITS] : starts[at.CONSUMER_UNITS + 1]]
    rows = len(device) // units
    loads = np.zeros(rows * devices, dtype=np.int64)
    taken = np.zeros(rows * devices, dtype=np.int64)
    seen = np.empty(devices, dtype=np.int64)
    for row in range(rows):
        place = device[row * units : (row + 1) * units]
        base = row * devices
        seen[:] = -1
        for u in range(units):
            loads[base + place[u]] += max(0, run_ns[u * devices + place[u]])
        for m in range(tensors):
            source = home[m] if producer[m] < 0 else place[producer[m]]
            away = False
            readers = consumers[m + 1] - consumers[m]
            for k in range(readers + output[m]):
                d = place[consumer_units[consumers[m] + k]] if k < readers else host
                if d != source and seen[d] != m:
                    seen[d] = m
                    away = True
                    taken[base + d] += into[m * devices + d]
            if away:
                loads[base + source] += out[m * devices + source]
        for d in range(devices):
            loads[base + d] += taken[base + d]
    return loads, taken
