"""The loads of devices and ports, and the bytes each device holds, kept up to date unit by unit. Imported lazily.

An update touches only what the unit exchanges, like the gains of Fiduccia, Mattheyses, "A linear-time heuristic for
improving network partitions", DAC 1982.
"""

from typing import NamedTuple

import numpy as np

from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.tables import compiled, internal, uncounted


class LoadTracker(NamedTuple):
    """A problem's tables, and the loads of the units placed so far.

    Shapes are those of `ProblemArrays`. `device` is -1 for a unit that is nowhere. `readers` (M×D) counts the readers
    of a tensor per device, the host's wait for an output included; `weight_users` is D×W. `device_ns` is the work of
    all slots of a device. `missing` counts transfers without a route.
    """

    contention: int
    run_ns: Integers
    workspace_bytes: Integers
    input_offsets: Integers
    input_tensors: Integers
    output_offsets: Integers
    output_tensors: Integers
    tensor_bytes: Integers
    tensor_producer: Integers
    tensor_home: Integers
    tensor_size_class: Integers
    weight_offsets: Integers
    weight_ids: Integers
    weight_bytes: Integers
    boundary_ns: Integers
    device_type: Integers
    device_slots: Integers
    device_blocking: Integers
    route_offsets: Integers
    route_links: Integers
    link_source: Integers
    link_destination: Integers
    link_port: Integers
    hop_ns: Integers
    device: Integers
    readers: Integers
    weight_users: Integers
    device_ns: Integers
    port_ns: Integers
    held_bytes: Integers
    missing: Integers


def load_tracker(arrays: ProblemArrays, *, contention: bool) -> LoadTracker:
    """A tracker with every unit nowhere: graph inputs lie at their homes, graph outputs are wanted on the host."""
    tensors, types = len(arrays.tensor_bytes), int(arrays.sizes[3])
    own = set(LoadTracker._fields) & {*ProblemArrays.__dataclass_fields__, "run_ns"} - {"boundary_ns", "hop_ns"}
    found = LoadTracker(
        **{name: getattr(arrays, name) for name in own},
        contention=int(contention),
        boundary_ns=arrays.boundary_ns.reshape(tensors, types),
        hop_ns=arrays.hop_ns.reshape(-1, max(1, len(arrays.link_port))),
        device=np.full(arrays.units, -1, dtype=np.int64),
        readers=np.zeros((tensors, arrays.devices), dtype=np.int64),
        weight_users=np.zeros((arrays.devices, len(arrays.weight_bytes)), dtype=np.int64),
        device_ns=np.zeros(arrays.devices, dtype=np.int64),
        port_ns=np.zeros(int(arrays.sizes[5]), dtype=np.int64),
        held_bytes=np.zeros(arrays.devices, dtype=np.int64),
        missing=np.zeros(1, dtype=np.int64),
    )
    clear(found, arrays.host, arrays.tensor_output)
    return found


@compiled
def clear(tracker, host, tensor_output):  # type: ignore[no-untyped-def]
    """Take every unit away."""
    for table in (tracker.device_ns, tracker.port_ns, tracker.held_bytes, tracker.missing):
        table[:] = 0
    tracker.device[:] = -1
    tracker.readers[:] = 0
    tracker.weight_users[:] = 0
    for m in range(len(tensor_output)):
        home = tracker.tensor_home[m]
        if tracker.tensor_producer[m] < 0:
            tracker.held_bytes[home] += tracker.tensor_bytes[m]
        if tensor_output[m]:
            tracker.readers[m, host] += 1
            if tracker.tensor_producer[m] < 0 and home != host:
                send(tracker, m, home, host, np.int64(1))


@internal
def send(tracker, m, source, destination, sign):  # type: ignore[no-untyped-def]
    """Add (sign 1) or remove (-1) the transfer of tensor `m` between two devices."""
    links, device_ns, blocking = tracker.route_links, tracker.device_ns, tracker.device_blocking
    route = source * len(device_ns) + destination
    first, last = tracker.route_offsets[route], tracker.route_offsets[route + 1]
    if first == last:
        tracker.missing[0] += sign
    if not tracker.contention:
        return
    hop_ns, kind, layout = tracker.hop_ns[tracker.tensor_size_class[m]], tracker.device_type, tracker.boundary_ns[m]
    for hop in range(first, last):
        e = links[hop]
        ns = hop_ns[e]
        if hop == first:
            ns += layout[kind[source]]
        if hop == last - 1:
            ns += layout[kind[destination]]
        a, b = tracker.link_source[e], tracker.link_destination[e]
        tracker.port_ns[tracker.link_port[e]] += sign * ns
        device_ns[a] += sign * ns * blocking[a]
        device_ns[b] += sign * ns * blocking[b]


@internal
def hold(tracker, u, d, sign):  # type: ignore[no-untyped-def]
    """Add (sign 1) or remove (-1) the work and the bytes of unit `u` on device `d`, transfers apart."""
    outputs, tensor_bytes = tracker.output_tensors, tracker.tensor_bytes
    ids, weight_bytes, users = tracker.weight_ids, tracker.weight_bytes, tracker.weight_users
    held = tracker.workspace_bytes[u]
    for k in range(tracker.output_offsets[u], tracker.output_offsets[u + 1]):
        held += tensor_bytes[outputs[k]]
    for k in range(tracker.weight_offsets[u], tracker.weight_offsets[u + 1]):
        before = users[d, ids[k]]
        users[d, ids[k]] = before + sign
        if before == 0 or before + sign == 0:
            held += weight_bytes[ids[k]]
    tracker.held_bytes[d] += sign * held
    tracker.device_ns[d] += sign * tracker.run_ns[u, d]


@uncounted
def put_unit(tracker, u, b):  # type: ignore[no-untyped-def]
    """Move unit `u` to device `b` (-1: nowhere) from wherever it is."""
    # Local names: reading a field of a tuple within a loop counts references each time.
    device, readers = tracker.device, tracker.readers
    inputs, outputs, producer, home = (
        tracker.input_tensors,
        tracker.output_tensors,
        tracker.tensor_producer,
        tracker.tensor_home,
    )
    # A literal would compile `hold` and `send` once for each.
    add, remove = np.int64(1), np.int64(-1)
    a = device[u]
    if a >= 0:
        hold(tracker, u, a, remove)
    if b >= 0:
        hold(tracker, u, b, add)
    for k in range(tracker.input_offsets[u], tracker.input_offsets[u + 1]):
        m = inputs[k]
        source = home[m] if producer[m] < 0 else device[producer[m]]
        if a >= 0:
            readers[m, a] -= 1
            if source >= 0 and a != source and readers[m, a] == 0:
                send(tracker, m, source, a, remove)
        if b >= 0:
            readers[m, b] += 1
            if source >= 0 and b != source and readers[m, b] == 1:
                send(tracker, m, source, b, add)
    for k in range(tracker.output_offsets[u], tracker.output_offsets[u + 1]):
        m = outputs[k]
        for d in range(readers.shape[1]):
            if readers[m, d] > 0:
                if a >= 0 and d != a:
                    send(tracker, m, a, d, remove)
                if b >= 0 and d != b:
                    send(tracker, m, b, d, add)
    device[u] = b


@internal
def per_slot(ns, slots):  # type: ignore[no-untyped-def]
    """A load spread evenly over slots, rounded up."""
    return ns if slots == 1 else -(-ns // slots)  # a division takes longer than the rest of the loop


@uncounted
def busiest_ns(tracker):  # type: ignore[no-untyped-def]
    """The load of the busiest device or port in ns per sample, rounded up, and that device (-1: a port)."""
    device_ns, slots, port_ns = tracker.device_ns, tracker.device_slots, tracker.port_ns
    most, busiest = 0, -1
    for d in range(len(device_ns)):
        each = per_slot(device_ns[d], slots[d])
        if each > most:
            most, busiest = each, d
    for ns in port_ns:
        if ns > most:
            most, busiest = ns, -1
    return most, busiest


@internal
def mean_square_ns(tracker):  # type: ignore[no-untyped-def]
    """The mean of all servers' squared loads: it falls where loads become even below the busiest."""
    device_ns, slots, port_ns = tracker.device_ns, tracker.device_slots, tracker.port_ns
    total = 0.0
    for d in range(len(device_ns)):
        each = float(per_slot(device_ns[d], slots[d]))
        total += each * each
    for ns in port_ns:
        total += float(ns) * ns
    return total / (len(device_ns) + len(port_ns))


@compiled
def bottleneck_rows(tracker, host, tensor_output, rows):  # type: ignore[no-untyped-def]
    """The load of the busiest server per row of devices (B×U); every transfer needs a route."""
    found = np.empty(len(rows), dtype=np.int64)
    for k in range(len(rows)):
        clear(tracker, host, tensor_output)
        for u in range(rows.shape[1]):
            put_unit(tracker, u, rows[k, u])
        found[k] = busiest_ns(tracker)[0]
    return found
