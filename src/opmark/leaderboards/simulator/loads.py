"""Compiled passes over rows of placements: stashed memory, sums of memory, and serial loads. Imported lazily."""

# ruff: noqa: PLR0917 (compiled functions take flat arrays by position)

import numpy as np

from opmark.leaderboards.problem.tables import compiled, sizes_of, tables_of


@compiled("int64[::1](int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64)")
def stash_rows(data, starts, device, replicas, forward, micro_batches):  # type: ignore[no-untyped-def]
    """Peak bytes per row and device when every sample in flight keeps its forward tensors.

    A device keeps as many samples as there are devices from it to the end of the pipeline, by turns with its
    `replicas` (a count per device), at most `micro_batches` (0: no limit). `forward` is 1 for forward units.
    """
    units, tensors, devices = sizes_of(data)[:3]
    of = tables_of(data, starts)
    host = sizes_of(data).host
    rows = len(device) // units
    found = np.zeros(rows * devices, dtype=np.int64)
    seen = np.empty(devices, dtype=np.int64)
    for row in range(rows):
        place = device[row * units : (row + 1) * units]
        reach = np.zeros((devices, devices), dtype=np.uint8)
        used = np.zeros(devices, dtype=np.uint8)
        here = np.zeros(len(of.weight_bytes) * devices, dtype=np.uint8)
        fixed = np.zeros(devices, dtype=np.int64)
        each = np.zeros(devices, dtype=np.int64)
        work = np.zeros(devices, dtype=np.int64)
        for u in range(units):
            d = place[u]
            used[d] = 1
            work[d] = max(work[d], of.workspace_bytes[u])
            for k in range(of.weight_offsets[u], of.weight_offsets[u + 1]):
                if here[of.weight_ids[k] * devices + d] == 0:
                    here[of.weight_ids[k] * devices + d] = 1
                    fixed[d] += of.weight_bytes[of.weight_ids[k]]
        seen[:] = -1
        for m in range(tensors):
            source = of.tensor_home[m] if of.tensor_producer[m] < 0 else place[of.tensor_producer[m]]
            kept = of.tensor_producer[m] < 0 or forward[of.tensor_producer[m]] == 1
            seen[source] = m
            if kept:
                each[source] += of.tensor_bytes[m]
            else:
                fixed[source] += of.tensor_bytes[m]
            readers = of.consumer_offsets[m + 1] - of.consumer_offsets[m]
            for k in range(readers + of.tensor_output[m]):
                d = place[of.consumer_units[of.consumer_offsets[m] + k]] if k < readers else host
                if (
                    k < readers
                    and of.tensor_producer[m] >= 0
                    and kept
                    and forward[of.consumer_units[of.consumer_offsets[m] + k]] == 1
                ):
                    reach[source, d] = 1
                if seen[d] != m:
                    seen[d] = m
                    if kept:
                        each[d] += of.tensor_bytes[m]
                    else:
                        fixed[d] += of.tensor_bytes[m]
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


@compiled("int64[::1](int64[::1], int64[::1], int64[::1])")
def sum_rows(data, starts, device):  # type: ignore[no-untyped-def]
    """Bytes per row and device when nothing is ever freed: weights, workspaces, and tensors where they are made."""
    units, tensors, devices = sizes_of(data)[:3]
    of = tables_of(data, starts)
    rows = len(device) // units
    found = np.zeros(rows * devices, dtype=np.int64)
    here = np.full(len(of.weight_bytes) * devices, -1, dtype=np.int64)
    for row in range(rows):
        for u in range(units):
            d = device[row * units + u]
            found[row * devices + d] += of.workspace_bytes[u]
            for k in range(of.weight_offsets[u], of.weight_offsets[u + 1]):
                if here[of.weight_ids[k] * devices + d] != row:
                    here[of.weight_ids[k] * devices + d] = row
                    found[row * devices + d] += of.weight_bytes[of.weight_ids[k]]
        for m in range(tensors):
            d = of.tensor_home[m] if of.tensor_producer[m] < 0 else device[row * units + of.tensor_producer[m]]
            found[row * devices + d] += of.tensor_bytes[m]
    return found


@compiled("UniTuple(int64[::1], 2)(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def serial_rows(data, starts, run_ns, out, into, device):  # type: ignore[no-untyped-def]
    """Load per row and device, in ns, and the part of it that is for taking in; `out` and `into` are M×D prices."""
    units, tensors, devices = sizes_of(data)[:3]
    host = sizes_of(data).host
    of = tables_of(data, starts)
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
            source = of.tensor_home[m] if of.tensor_producer[m] < 0 else place[of.tensor_producer[m]]
            away = False
            readers = of.consumer_offsets[m + 1] - of.consumer_offsets[m]
            for k in range(readers + of.tensor_output[m]):
                d = place[of.consumer_units[of.consumer_offsets[m] + k]] if k < readers else host
                if d != source and seen[d] != m:
                    seen[d] = m
                    away = True
                    taken[base + d] += into[m * devices + d]
            if away:
                loads[base + source] += out[m * devices + source]
        for d in range(devices):
            loads[base + d] += taken[base + d]
    return loads, taken
