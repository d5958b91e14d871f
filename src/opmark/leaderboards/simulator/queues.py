"""Heaps and hand-overs of the compiled simulator. Imported lazily, by `engine` alone."""

# ruff: noqa: PLR0917 (compiled functions take flat arrays by position)

from opmark.leaderboards.problem.tables import internal, uncounted

MILLION = 1_000_000


@uncounted("void(int64[::1], int64, int64, int64, int64[::1])")
def push(heap, base, size, item, key):  # type: ignore[no-untyped-def]
    """Add `item` to the heap of `size` items at `base`: the largest key first, then the lowest item."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        other = heap[base + parent]
        if key[other] > key[item] or (key[other] == key[item] and other < item):
            break
        heap[base + hole] = other
        hole = parent
    heap[base + hole] = item


@uncounted("int64(int64[::1], int64, int64, int64[::1])")
def pop(heap, base, size, key):  # type: ignore[no-untyped-def]
    """Remove and return the first of the `size` items at `base`."""
    top = heap[base]
    item = heap[base + size - 1]
    last = size - 1
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= last:
            break
        a = heap[base + child]
        if child + 1 < last:
            b = heap[base + child + 1]
            if key[b] > key[a] or (key[b] == key[a] and b < a):
                child += 1
                a = b
        if key[item] > key[a] or (key[item] == key[a] and item < a):
            break
        heap[base + hole] = a
        hole = child
    heap[base + hole] = item
    return top


@internal
def deliver(m, d, readers_of, stamp):  # type: ignore[no-untyped-def]
    """Tensor `m` is on device `d`: its readers there wait for one input less (rule 4).

    With a `stamp` (the time, else -1) those that become ready now queue behind those that were ready before.
    """
    offsets, units, device, pending, ready, base, size, key = readers_of
    for k in range(offsets[m], offsets[m + 1]):
        u = units[k]
        if device[u] == d:
            pending[u] -= 1
            if pending[u] == 0:
                if stamp >= 0:
                    key[u] = -stamp
                push(ready, base[d], size[d], u, key)
                size[d] += 1


@internal
def send(m, queues, stamp):  # type: ignore[no-untyped-def]
    """Tensor `m` exists: its transfers queue at their first links (rule 5); of a multicast only the first has any."""
    offsets, hop_offsets, hop_link, waiting, base, size, urgency = queues
    for t in range(offsets[m], offsets[m + 1]):
        if hop_offsets[t] < hop_offsets[t + 1]:
            if stamp >= 0:
                urgency[t] = -stamp
            e = hop_link[hop_offsets[t]]
            push(waiting, base[e], size[e], t, urgency)
            size[e] += 1


@internal
def enter(u, d, running, base, size, factor, changed):  # type: ignore[no-untyped-def]
    """Unit `u` runs on device `d` from now on, at full speed until the instant has settled."""
    running[base[d] + size[d]] = u
    size[d] += 1
    factor[u] = MILLION
    changed[d] = 1


@internal
def leave(u, d, running, base, size, changed):  # type: ignore[no-untyped-def]
    """Unit `u` no longer runs on device `d`."""
    k = base[d]
    while running[k] != u:
        k += 1
    size[d] -= 1
    running[k] = running[base[d] + size[d]]
    changed[d] = 1


@internal
def rescale(  # type: ignore[no-untyped-def]
    time, running, base, size, factor, changed, classes, unit_class, table, device_type, unit_end, event_key
):
    """Multiply the remaining time of every unit on a changed device by new / old factor, rounded up (rule 3).

    Returns 1 if any end moved.
    """
    moved = 0
    for d in range(len(size)):
        if changed[d] == 0:
            continue
        changed[d] = 0
        for k in range(base[d], base[d] + size[d]):
            u = running[k]
            row = (device_type[d] * classes + unit_class[u]) * classes
            slowed = MILLION
            for other in range(base[d], base[d] + size[d]):
                if other != k:
                    slowed += table[row + unit_class[running[other]]] - MILLION
            if slowed != factor[u]:
                left = unit_end[u] - time
                whole = left // factor[u]
                rest = left - whole * factor[u]
                left = whole * slowed + (rest * slowed + factor[u] - 1) // factor[u]
                factor[u] = slowed
                unit_end[u] = time + left
                event_key[u] = -(time + left)
                moved = 1
    return moved


@internal
def release(inputs, d, copies, tensor_bytes):  # type: ignore[no-untyped-def]
    """Bytes that device `d` gives back when a reader of `inputs` ends: copies nothing else there needs (rule 8)."""
    transfer_offsets, transfer_destination, transfer_refs, source_refs = copies
    freed = 0
    for m in inputs:
        t = transfer_offsets[m]
        while t < transfer_offsets[m + 1] and transfer_destination[t] != d:
            t += 1
        if t < transfer_offsets[m + 1]:
            transfer_refs[t] -= 1
            freed += tensor_bytes[m] if transfer_refs[t] == 0 else 0
        else:
            source_refs[m] -= 1
            freed += tensor_bytes[m] if source_refs[m] == 0 else 0
    return freed


@internal
def settle(u, d, devices, offsets, ids, sizes, here):  # type: ignore[no-untyped-def]
    """Bytes of the weights that unit `u` is the first on device `d` to need; `here` remembers them."""
    added = 0
    for k in range(offsets[u], offsets[u + 1]):
        if here[ids[k] * devices + d] == 0:
            here[ids[k] * devices + d] = 1
            added += sizes[ids[k]]
    return added


@internal
def multicast_ns(source, destinations, boundary, device_type, route_offsets, route_links, hop_ns):  # type: ignore[no-untyped-def]
    """The slowest of the ways from `source` to all `destinations`, every hop and both layout costs included."""
    slowest = 0
    devices = len(device_type)
    for d in destinations:
        way = boundary[device_type[source]] + boundary[device_type[d]]
        for k in range(route_offsets[source * devices + d], route_offsets[source * devices + d + 1]):
            way += hop_ns[route_links[k]]
        slowest = max(slowest, way)
    return slowest


@internal
def leaving_ns(outputs, kind, types, transfer_offsets, boundary_ns):  # type: ignore[no-untyped-def]
    """The layout costs of those `outputs` that leave a device of type `kind`, each paid once."""
    total = 0
    for m in outputs:
        if transfer_offsets[m] < transfer_offsets[m + 1]:
            total += boundary_ns[m * types + kind]
    return total
