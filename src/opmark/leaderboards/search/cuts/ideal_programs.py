"""The compiled dynamic programs over ideals: splits of least maximum load. Imported lazily."""

# ruff: noqa: PLR0917, PLR0915 (compiled functions take flat arrays by position)

import numpy as np
from numba import njit  # noqa: TID253 (this module is imported lazily)

NEVER = np.iinfo(np.int64).max


@njit(cache=True)
def _has(bits, ideal, block):  # type: ignore[no-untyped-def]
    return (bits[ideal, block // 62] >> (block % 62)) & 1


@njit(cache=True)
def paid(m, inner, outer, extra, bits, maker, reader_offsets, readers, away, home, wanted, fixed):  # type: ignore[no-untyped-def]
    """What tensor `m` costs the part `outer` minus `inner`, plus block `extra` (-1: none): 0 nothing, 1 in, 2 out.

    `away`, `home` and `wanted` are 1 for graph outputs that must leave, graph inputs that lie here, and graph outputs
    that must come. With `fixed`, only what is taken in from `inner` or from elsewhere, which growing cannot undo.
    """
    made = maker[m]
    inside = home[m] == 1 if made < 0 else made == extra or (_has(bits, outer, made) and not _has(bits, inner, made))
    if inside:
        if fixed:
            return 0
        if away[m]:
            return 2
    else:
        if fixed and made >= 0 and _has(bits, inner, made) == 0:
            return 0
        if wanted[m]:
            return 1
    for k in range(reader_offsets[m], reader_offsets[m + 1]):
        r = readers[k]
        own = r == extra or (_has(bits, outer, r) == 1 and _has(bits, inner, r) == 0)
        if own != inside:
            return 2 if inside else 1
    return 0


@njit(cache=True)
def least_max_load(  # type: ignore[no-untyped-def]
    lattice, run, size, memory, count, prices, maker, readers_of, touched_by, bound, steps, tables, room, at
):
    """f[ideal][devices used of each class] = the least maximum load, at most `bound`, with its parent ideal and class.

    `lattice` is (bits, offsets, child, added). `run` is C×B (-1: cannot), `size` B, `memory` and `count` C; `prices`
    are out, into, away, home, wanted (C×M, see `paid`) and idle (C), what a device without units pays; `readers_of` and
    `touched_by` are compressed rows. `tables` are f, parent and chosen (I×states). A part grows block by block from
    every ideal; it is given up once what it can never lose again, its compute and what it takes from before, exceeds
    `bound`. After about `steps` blocks tried it comes back with where it is in `at` (ideal, class, head and tail of the
    queue in `room`), to be called again: all is done when `at[0]` is I.
    """
    bits, offsets, child, added = lattice
    out, into, away, home, wanted, idle = prices
    reader_offsets, readers = readers_of
    touch_offsets, touch = touched_by
    f, parent, chosen = tables
    stamp, queue, load, floor, held = room
    ideals, classes = len(bits), len(count)
    stride = np.ones(classes, dtype=np.int64)
    states = 1
    for c in range(classes):
        stride[c] = states
        states *= count[c] + 1
    done = 0
    while at[0] < ideals:
        inner, c = at[0], at[1]
        mark = inner * classes + c
        if at[3] == 0:
            useful = False
            for k in range(states):
                if f[inner, k] <= bound and (k // stride[c]) % (count[c] + 1) < count[c]:
                    useful = True
            if useful:
                queue[0] = inner
                floor[0] = held[0] = 0
                load[0] = idle[c]
                stamp[inner] = mark
                at[3] = 1
        head, tail = at[2], at[3]
        while head < tail and done < steps:
            outer = queue[head]
            now, least, bytes_held = load[head], floor[head], held[head]
            head += 1
            if outer != inner and now <= bound:
                for k in range(states):
                    if f[inner, k] <= bound and (k // stride[c]) % (count[c] + 1) < count[c]:
                        value = max(f[inner, k], now)
                        if value < f[outer, k + stride[c]]:
                            f[outer, k + stride[c]] = value
                            parent[outer, k + stride[c]] = inner
                            chosen[outer, k + stride[c]] = c
            for edge in range(offsets[outer], offsets[outer + 1]):
                larger, block = child[edge], added[edge]
                done += 1
                if stamp[larger] == mark or run[c, block] < 0 or bytes_held + size[block] > memory[c]:
                    continue
                floor_then = least + run[c, block]
                if floor_then > bound:
                    continue
                load_then = now + run[c, block]
                for position in range(touch_offsets[block], touch_offsets[block + 1]):
                    m = touch[position]
                    done += 1
                    was = paid(
                        m, inner, outer, -1, bits, maker, reader_offsets, readers, away[c], home[c], wanted[c], False
                    )
                    is_now = paid(
                        m, inner, outer, block, bits, maker, reader_offsets, readers, away[c], home[c], wanted[c], False
                    )
                    load_then -= into[c, m] if was == 1 else (out[c, m] if was == 2 else 0)
                    load_then += into[c, m] if is_now == 1 else (out[c, m] if is_now == 2 else 0)
                    was = paid(
                        m, inner, outer, -1, bits, maker, reader_offsets, readers, away[c], home[c], wanted[c], True
                    )
                    is_now = paid(
                        m, inner, outer, block, bits, maker, reader_offsets, readers, away[c], home[c], wanted[c], True
                    )
                    floor_then += into[c, m] if is_now == 1 and was == 0 else 0
                if floor_then > bound:
                    continue
                stamp[larger] = mark
                queue[tail], load[tail], floor[tail] = larger, load_then, floor_then
                held[tail] = bytes_held + size[block]
                tail += 1
        if head < tail:
            at[2], at[3] = head, tail
            return
        done += 1
        at[1], at[2], at[3] = c + 1, 0, 0
        if at[1] == classes:
            at[0], at[1] = inner + 1, 0


@njit(cache=True)
def stages_and_replicas(  # type: ignore[no-untyped-def]
    lattice, run, weight, size, memory, per_byte, replicate, bound, steps, tables, room, at
):
    """f[ideal][devices used] = the least maximum stage time in ns, with its parent ideal and the last stage's devices.

    Devices are used in the order of the rows of `run` (D×B, -1: cannot); a stage of m replicas costs
    (its slowest member's compute + 4(m − 1)/m · `weight` · `per_byte`) / m, and a device may be left out. `tables` are
    f, parent and members (I×(D + 1)), `room` is stamp, queue, compute (I×D), weights and held; f of the empty ideal
    with no device is 0. Comes back after about `steps` steps, to be called again until `at[0]` is I.
    """
    bits, offsets, child, added = lattice
    f, parent, members = tables
    stamp, queue, compute, weights, held = room
    ideals, devices = len(bits), len(run)
    done = 0
    while at[0] < ideals:
        inner = at[0]
        if at[3] == 0:
            for used in range(devices):
                if f[inner, used] < f[inner, used + 1]:
                    f[inner, used + 1] = f[inner, used]
                    parent[inner, used + 1] = inner
                    members[inner, used + 1] = 0
            if f[inner, devices] <= bound:
                queue[0] = inner
                compute[0, :] = 0
                weights[0] = held[0] = 0
                stamp[inner] = inner
                at[3] = 1
        head, tail = at[2], at[3]
        while head < tail and done < steps:
            outer = queue[head]
            here = head
            head += 1
            if outer != inner:
                for used in range(devices):
                    if f[inner, used] > bound:
                        continue
                    slowest, space = 0.0, np.inf
                    for m in range(1, (devices - used if replicate else 1) + 1):
                        done += 1
                        slowest = max(slowest, compute[here, used + m - 1])
                        space = min(space, memory[used + m - 1])
                        if held[here] > space:
                            break
                        stage = (slowest + 4.0 * (m - 1) * weights[here] * per_byte / m) / m
                        value = max(f[inner, used], stage)
                        if value < f[outer, used + m]:
                            f[outer, used + m] = value
                            parent[outer, used + m] = inner
                            members[outer, used + m] = m
            for edge in range(offsets[outer], offsets[outer + 1]):
                larger, block = child[edge], added[edge]
                done += 1
                if stamp[larger] == inner:
                    continue
                least = np.inf
                for d in range(devices):
                    compute[tail, d] = compute[here, d] + run[d, block] if run[d, block] >= 0 else np.inf
                    least = min(least, compute[tail, d])
                if least / (devices if replicate else 1) > bound:
                    continue
                stamp[larger] = inner
                queue[tail] = larger
                weights[tail] = weights[here] + weight[block]
                held[tail] = held[here] + size[block]
                tail += 1
        if head < tail:
            at[2], at[3] = head, tail
            return
        done += 1
        at[0], at[2], at[3] = inner + 1, 0, 0
