"""Compiled dynamic programs over ideals: splits of least maximum load. Imported lazily.

A program extends every ideal, block by block, by the next device's part. After about `steps` steps it returns, and
`position` says where to continue: ideal, device class, and head and tail of the queue of parts. All is done when
`position[0]` is the number of ideals.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.tables import compiled, internal

NEVER = np.iinfo(np.int64).max
Floats = npt.NDArray[np.float64]


class PartLoads(NamedTuple):
    """The load of parts on C classes of equal devices.

    Shapes: B blocks, M tensors. A part is the set of blocks on one device.

    `run` is C×B (-1: cannot run), `size` B and `memory` C are in bytes; a class has `devices` devices. `out` and `into`
    (C×M) are the prices of sending a tensor and of taking it in; `idle` (C) is the load of a device without blocks.
    `away`, `home` and `wanted` (C×M) mark graph outputs that must leave, graph inputs that lie on the device, and graph
    outputs that must arrive. `producer` (M) is a block or -1; readers, and the tensors that touch a block, are rows.
    """

    run: Integers
    size: Integers
    memory: Integers
    devices: Integers
    out: Integers
    into: Integers
    away: Integers
    home: Integers
    wanted: Integers
    idle: Integers
    producer: Integers
    reader_offsets: Integers
    readers: Integers
    touch_offsets: Integers
    touching: Integers


class LoadPrograms(NamedTuple):
    """The tables of `least_max_load`, I×states: the `cost` of an ideal, its `parent` ideal and last `device_class`.

    `mark`, `queue`, `load`, `floor` and `held` (I) belong to the parts that grow from one ideal.
    """

    cost: Integers
    parent: Integers
    device_class: Integers
    mark: Integers
    queue: Integers
    load: Integers
    floor: Integers
    held: Integers
    position: Integers


class StageCosts(NamedTuple):
    """The costs of pipeline stages: `run` is D×B (-1: cannot run), `weight` and `size` are B, `memory` is D.

    `ns_per_byte` is the time to exchange one byte of weights; without `replicate` a stage has one device.
    """

    run: Floats
    weight: Floats
    size: Floats
    memory: Floats
    ns_per_byte: float
    replicate: bool


class StagePrograms(NamedTuple):
    """The tables of `stages_and_replicas`, I×(D + 1): an ideal's `cost`, `parent` and last stage's `replicas`.

    `mark`, `queue`, `compute` (I×D), `weight` and `held` (I) belong to the stages that grow from one ideal.
    """

    cost: Floats
    parent: Integers
    replicas: Integers
    mark: Integers
    queue: Integers
    compute: Floats
    weight: Floats
    held: Floats
    position: Integers


@internal
def contains(bits, ideal, block):  # type: ignore[no-untyped-def]
    """1 if the ideal contains the block."""
    return (bits[ideal, block // 62] >> (block % 62)) & 1


@internal
def payment(m, part, lasting, bits, loads):  # type: ignore[no-untyped-def]
    """The price that tensor `m` costs a part in ns.

    `part` is (class, inner ideal, outer ideal, block): the outer ideal without the inner one, plus a block (-1: none).
    With `lasting`, only the price of what comes from the inner ideal or from elsewhere: growing cannot save that.
    """
    c, inner, outer, block = part
    made = loads.producer[m]
    if made < 0:
        inside = loads.home[c, m] == 1
    else:
        inside = made == block or (contains(bits, outer, made) == 1 and contains(bits, inner, made) == 0)
    if inside:
        if lasting:
            return 0
        if loads.away[c, m]:
            return loads.out[c, m]
    else:
        if lasting and made >= 0 and contains(bits, inner, made) == 0:
            return 0
        if loads.wanted[c, m]:
            return loads.into[c, m]
    for k in range(loads.reader_offsets[m], loads.reader_offsets[m + 1]):
        r = loads.readers[k]
        own = r == block or (contains(bits, outer, r) == 1 and contains(bits, inner, r) == 0)
        if own != inside:
            return loads.out[c, m] if inside else loads.into[c, m]
    return 0


@internal(forceinline=True)
def part_with(block, part, bits, loads):  # type: ignore[no-untyped-def]
    """The load that a block adds to a part, and the share of it that the part can never lose, in ns."""
    c, inner, outer = part
    without, with_block = (c, inner, outer, np.int64(-1)), (c, inner, outer, block)
    # Literals would compile `payment` once for each.
    every, only_lasting = np.bool_(False), np.bool_(True)
    load = lasting = loads.run[c, block]
    for k in range(loads.touch_offsets[block], loads.touch_offsets[block + 1]):
        m = loads.touching[k]
        load += payment(m, with_block, every, bits, loads) - payment(m, without, every, bits, loads)
        lasting += max(
            0, payment(m, with_block, only_lasting, bits, loads) - payment(m, without, only_lasting, bits, loads)
        )
    return load, lasting


@internal(forceinline=True)
def has_free_device(state, c, stride, loads):  # type: ignore[no-untyped-def]
    """True if a state leaves a device of class `c` unused."""
    return (state // stride[c]) % (loads.devices[c] + 1) < loads.devices[c]


@compiled
def least_max_load(steps, bound, ideals, loads, tables):  # type: ignore[no-untyped-def]
    """cost[ideal][used devices of each class] = the least maximum load, if at most `bound`.

    Tarnawski et al., NeurIPS 2020, section 5.1.1. A part is abandoned once its compute and what it takes from before,
    which it can never lose again, exceed `bound`.
    """
    cost, parent, device_class, mark, queue, load, floor, held, position = tables
    bits, offsets, child, block_added = ideals
    classes, states = len(loads.devices), cost.shape[1]
    stride = np.ones(classes, dtype=np.int64)
    for c in range(1, classes):
        stride[c] = stride[c - 1] * (loads.devices[c - 1] + 1)
    done = 0
    while position[0] < len(bits):
        inner, c = position[0], position[1]
        own_mark = inner * classes + c
        if position[3] == 0:
            useful = False
            for k in range(states):
                useful |= cost[inner, k] <= bound and has_free_device(k, c, stride, loads)
            if useful:
                queue[0] = inner
                floor[0] = held[0] = 0
                load[0] = loads.idle[c]
                mark[inner] = own_mark
                position[3] = 1
        head, tail = position[2], position[3]
        while head < tail and done < steps:
            outer = queue[head]
            now, least, bytes_held = load[head], floor[head], held[head]
            head += 1
            if outer != inner and now <= bound:
                for k in range(states):
                    if cost[inner, k] <= bound and has_free_device(k, c, stride, loads):
                        value = max(cost[inner, k], now)
                        if value < cost[outer, k + stride[c]]:
                            cost[outer, k + stride[c]] = value
                            parent[outer, k + stride[c]] = inner
                            device_class[outer, k + stride[c]] = c
            for edge in range(offsets[outer], offsets[outer + 1]):
                larger, block = child[edge], block_added[edge]
                done += 1
                run_ns, held_then = loads.run[c, block], bytes_held + loads.size[block]
                if mark[larger] == own_mark or run_ns < 0 or held_then > loads.memory[c] or least + run_ns > bound:
                    continue
                done += loads.touch_offsets[block + 1] - loads.touch_offsets[block]
                added, lasting = part_with(block, (c, inner, outer), bits, loads)
                if least + lasting > bound:
                    continue
                mark[larger] = own_mark
                queue[tail], load[tail], floor[tail], held[tail] = larger, now + added, least + lasting, held_then
                tail += 1
        if head < tail:
            position[2], position[3] = head, tail
            return
        done += 1
        position[1], position[2], position[3] = c + 1, 0, 0
        if position[1] == classes:
            position[0], position[1] = inner + 1, 0


@compiled
def stages_and_replicas(steps, ideals, costs, tables):  # type: ignore[no-untyped-def]
    """cost[ideal][used devices] = the least time of the slowest stage in ns.

    Narayanan et al., SOSP 2019, section 3.1. Devices are used in their given order, and a device may be left out. A
    stage on m devices takes (its slowest device's compute + 4(m - 1)/m · weights · ns per byte) / m.
    """
    cost, position = tables.cost, tables.position
    mark, queue, compute, weight, held = tables.mark, tables.queue, tables.compute, tables.weight, tables.held
    devices = len(costs.run)
    done = 0
    while position[0] < len(ideals.bits):
        inner = position[0]
        if position[3] == 0:
            for used in range(devices):
                if cost[inner, used] < cost[inner, used + 1]:
                    cost[inner, used + 1] = cost[inner, used]
                    tables.parent[inner, used + 1] = inner
                    tables.replicas[inner, used + 1] = 0
            queue[0] = mark[inner] = inner
            compute[0, :] = 0
            weight[0] = held[0] = 0
            position[3] = 1
        head, tail = position[2], position[3]
        while head < tail and done < steps:
            outer, here = queue[head], head
            head += 1
            if outer != inner:
                for used in range(devices):
                    if cost[inner, used] == np.inf:
                        continue
                    slowest, space = 0.0, np.inf
                    for m in range(1, (devices - used if costs.replicate else 1) + 1):
                        done += 1
                        slowest = max(slowest, compute[here, used + m - 1])
                        space = min(space, costs.memory[used + m - 1])
                        if held[here] > space:
                            break
                        stage = (slowest + 4.0 * (m - 1) * weight[here] * costs.ns_per_byte / m) / m
                        value = max(cost[inner, used], stage)
                        if value < cost[outer, used + m]:
                            cost[outer, used + m] = value
                            tables.parent[outer, used + m] = inner
                            tables.replicas[outer, used + m] = m
            for edge in range(ideals.offsets[outer], ideals.offsets[outer + 1]):
                larger, block = ideals.child[edge], ideals.added[edge]
                done += 1
                if mark[larger] == inner:
                    continue
                for d in range(devices):
                    compute[tail, d] = compute[here, d] + costs.run[d, block] if costs.run[d, block] >= 0 else np.inf
                mark[larger] = inner
                queue[tail] = larger
                weight[tail] = weight[here] + costs.weight[block]
                held[tail] = held[here] + costs.size[block]
                tail += 1
        if head < tail:
            position[2], position[3] = head, tail
            return
        done += 1
        position[0], position[2], position[3] = inner + 1, 0, 0
