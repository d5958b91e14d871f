"""Compiled annealing where loads are all that counts: a move costs what it changes, not a simulation. Imported lazily.

Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 220, 1983; loads are kept up to date as
gains are in Fiduccia, Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982.
"""

# ruff: noqa: PLR0917, PLR0915 (compiled functions take flat arrays by position, and unpack them)

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

from opmark.leaderboards.problem import packing as at
from opmark.leaderboards.search.walk_moves import move, new_journal, undo

# How many groups are tried to find one on the busiest device, and how often that is wanted.
TRIES, WANTED = 6, 0.4


@njit(cache=True)
def _carry(m, source, d, sign, net, state):  # type: ignore[no-untyped-def]
    """Add (sign 1) or take away (-1) the transfer of tensor `m` from one device to another."""
    sizes, kind, size_class, boundary, blocking, link_source, link_destination = net[:7]
    link_port, route_offsets, route_links, hop_ns, contention = net[7:]
    load, port, lost = state[2], state[3], state[6]
    types, links, devices = sizes[3], sizes[4], sizes[2]
    first, last = route_offsets[source * devices + d], route_offsets[source * devices + d + 1]
    if first == last:
        lost[0] += sign
    for hop in range(first, last):
        e = route_links[hop]
        duration = hop_ns[size_class[m] * links + e]
        if hop == first:
            duration += boundary[m * types + kind[source]]
        if hop == last - 1:
            duration += boundary[m * types + kind[d]]
        if contention[0]:
            port[link_port[e]] += sign * duration
            load[link_source[e]] += sign * duration * blocking[link_source[e]]
            load[link_destination[e]] += sign * duration * blocking[link_destination[e]]


@njit(cache=True)
def _shift(u, a, b, graph, net, state):  # type: ignore[no-untyped-def]
    """Unit `u` goes from device `a` to `b`; a device of -1 is nowhere."""
    exec_ns, dispatch, work, inputs, input_tensors, outputs, output_tensors, producer, home = graph[:9]
    tensor_bytes, weight_offsets, weight_ids, weight_bytes = graph[9:]
    place, count, load, held, refs = state[0], state[1], state[2], state[4], state[5]
    types, devices = net[0][3], net[0][2]
    kind = net[1]
    weights = len(weight_bytes)
    for side in range(2):
        d, sign = (a, -1) if side == 0 else (b, 1)
        if d < 0:
            continue
        duration = exec_ns[u * types + kind[d]]
        if duration > 0:
            load[d] += sign * (duration + dispatch[d])
        held[d] += sign * work[u]
        for k in range(weight_offsets[u], weight_offsets[u + 1]):
            w = d * weights + weight_ids[k]
            before = refs[w]
            refs[w] += sign
            if before == 0 or refs[w] == 0:
                held[d] += sign * weight_bytes[weight_ids[k]]
    for k in range(inputs[u], inputs[u + 1]):
        m = input_tensors[k]
        source = home[m] if producer[m] < 0 else place[producer[m]]
        if a >= 0:
            count[m * devices + a] -= 1
            if source >= 0 and a != source and count[m * devices + a] == 0:
                _carry(m, source, a, -1, net, state)
        if b >= 0:
            count[m * devices + b] += 1
            if source >= 0 and b != source and count[m * devices + b] == 1:
                _carry(m, source, b, 1, net, state)
    for k in range(outputs[u], outputs[u + 1]):
        m = output_tensors[k]
        if a >= 0:
            held[a] -= tensor_bytes[m]
        if b >= 0:
            held[b] += tensor_bytes[m]
        for d in range(devices):
            if count[m * devices + d] > 0:
                if a >= 0 and d != a:
                    _carry(m, a, d, -1, net, state)
                if b >= 0 and d != b:
                    _carry(m, b, d, 1, net, state)
    place[u] = b


@njit(cache=True)
def _judge(state, slots, memory, uneven, per_excess):  # type: ignore[no-untyped-def]
    """What a state is worth (load, memory and unevenness), its busiest load, whether it fits, the busiest device."""
    load, port, held, lost = state[2], state[3], state[4], state[6]
    if lost[0]:
        return np.inf, np.inf, False, -1
    busiest, squares, excess, most = 1.0, 0.0, 0.0, -1
    for d in range(len(load)):
        each = -(-load[d] // slots[d])
        squares += float(each) * each
        if each > busiest:
            busiest, most = float(each), d
        if held[d] > memory[d]:
            excess += (held[d] - memory[d]) / memory[d]
    for p in range(len(port)):
        squares += float(port[p]) * port[p]
        if port[p] > busiest:
            busiest, most = float(port[p]), -1
    value = busiest + per_excess * excess + uneven * squares / busiest / (len(load) + len(port))
    return value, busiest, excess == 0.0, most


@njit(cache=True)
def walk_loads(seed, steps, heats, weights, data, starts, contention, memory, tables, chosen, best):  # type: ignore[no-untyped-def]
    """Walk so many steps from `chosen` (a device per group), which ends where the walk ends; returns the best load.

    `best` receives the best that fits into memory, and stays as it is where nothing did (then inf is returned). The
    temperature falls from `heats[0]` to `heats[1]` times the cost. `weights` are what a device's memory exceeded once
    over adds, as a share of the cost at the start, first and last, and that of uneven loads. `tables` are those of
    `GuidedSearch`.
    """
    np.random.seed(seed)
    units, tensors, devices, ports, host = data[0], data[1], data[2], data[5], data[6]
    output = data[starts[at.TENSOR_OUTPUT] : starts[at.TENSOR_OUTPUT + 1]]
    slots = data[starts[at.DEVICE_SLOTS] : starts[at.DEVICE_SLOTS + 1]]
    graph = (
        data[starts[at.EXEC_NS] : starts[at.EXEC_NS + 1]],
        data[starts[at.DISPATCH] : starts[at.DISPATCH + 1]],
        data[starts[at.WORKSPACE] : starts[at.WORKSPACE + 1]],
        data[starts[at.INPUT_OFFSETS] : starts[at.INPUT_OFFSETS + 1]],
        data[starts[at.INPUT_TENSORS] : starts[at.INPUT_TENSORS + 1]],
        data[starts[at.OUTPUT_OFFSETS] : starts[at.OUTPUT_OFFSETS + 1]],
        data[starts[at.OUTPUT_TENSORS] : starts[at.OUTPUT_TENSORS + 1]],
        data[starts[at.TENSOR_PRODUCER] : starts[at.TENSOR_PRODUCER + 1]],
        data[starts[at.TENSOR_HOME] : starts[at.TENSOR_HOME + 1]],
        data[starts[at.TENSOR_BYTES] : starts[at.TENSOR_BYTES + 1]],
        data[starts[at.WEIGHT_OFFSETS] : starts[at.WEIGHT_OFFSETS + 1]],
        data[starts[at.WEIGHT_IDS] : starts[at.WEIGHT_IDS + 1]],
        data[starts[at.WEIGHT_BYTES] : starts[at.WEIGHT_BYTES + 1]],
    )
    net = (
        data[:12],
        data[starts[at.DEVICE_TYPE] : starts[at.DEVICE_TYPE + 1]],
        data[starts[at.TENSOR_SIZE_CLASS] : starts[at.TENSOR_SIZE_CLASS + 1]],
        data[starts[at.BOUNDARY] : starts[at.BOUNDARY + 1]],
        data[starts[at.BLOCKING] : starts[at.BLOCKING + 1]],
        data[starts[at.LINK_SOURCE] : starts[at.LINK_SOURCE + 1]],
        data[starts[at.LINK_DESTINATION] : starts[at.LINK_DESTINATION + 1]],
        data[starts[at.LINK_PORT] : starts[at.LINK_PORT + 1]],
        data[starts[at.ROUTE_OFFSETS] : starts[at.ROUTE_OFFSETS + 1]],
        data[starts[at.ROUTE_LINKS] : starts[at.ROUTE_LINKS + 1]],
        data[starts[at.HOP_NS] : starts[at.HOP_NS + 1]],
        contention,
    )
    groups = len(chosen)
    unit_offsets, members, movable = tables[8], tables[9], tables[1]
    state = (
        np.full(units, -1, dtype=np.int64),
        np.zeros(tensors * devices, dtype=np.int64),
        np.zeros(devices, dtype=np.int64),
        np.zeros(ports, dtype=np.int64),
        np.zeros(devices, dtype=np.int64),
        np.zeros(devices * max(1, len(graph[12])), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )
    for m in range(tensors):
        if graph[7][m] < 0:
            state[4][graph[8][m]] += graph[9][m]
        if output[m]:
            state[1][m * devices + host] += 1
            if graph[7][m] < 0 and graph[8][m] != host:
                _carry(m, graph[8][m], host, 1, net, state)
    for g in range(groups):
        for k in range(unit_offsets[g], unit_offsets[g + 1]):
            _shift(members[k], -1, chosen[g], graph, net, state)
    journal = new_journal(groups)
    uneven = weights[2]
    busiest = _judge(state, slots, memory, uneven, 0.0)[1]
    per_excess = weights[0] * busiest
    level, busiest, fits, most = _judge(state, slots, memory, uneven, per_excess)
    least, found = level, np.inf
    if fits:
        found = busiest
        best[:] = chosen
    heat = heats[0]
    cooling = (heats[1] / heats[0]) ** (256.0 / steps) if heats[0] > 0.0 else 1.0
    stiffer = (weights[1] / weights[0]) ** (256.0 / steps)
    for step in range(steps):
        if step % 256 == 255:
            heat *= cooling
            per_excess *= stiffer
            level, busiest, fits, most = _judge(state, slots, memory, uneven, per_excess)
        count = 0
        for _ in range(2 if np.random.random() < 0.2 else 1):
            first = movable[np.random.randint(len(movable))]
            if most >= 0 and np.random.random() < WANTED:
                for _ in range(TRIES):
                    if chosen[first] == most:
                        break
                    first = movable[np.random.randint(len(movable))]
            count = move(chosen, first, tables, devices, True, journal, count)
        if count == 0:
            continue
        for k in range(count):
            g = journal[0][k]
            for i in range(unit_offsets[g], unit_offsets[g + 1]):
                _shift(members[i], journal[1][k], journal[2][k], graph, net, state)
        value, busiest, fits, busy = _judge(state, slots, memory, uneven, per_excess)
        limit = level - heat * least * np.log(np.random.random()) if heat > 0.0 else level
        if value <= limit:
            level, most = value, busy
            least = min(least, value)
            if fits and busiest < found:
                found = busiest
                best[:] = chosen
            continue
        for k in range(count - 1, -1, -1):
            g = journal[0][k]
            for i in range(unit_offsets[g], unit_offsets[g + 1]):
                _shift(members[i], journal[2][k], journal[1][k], graph, net, state)
        undo(chosen, journal, count)
    return found
