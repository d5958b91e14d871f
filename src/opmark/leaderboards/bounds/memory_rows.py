"""Rows of a program: the bytes that every solution keeps in the memory of a device.

Weights count once per device. Under `sum` so does all that units make. By liveness a tensor is in memory while a unit u
runs if something before u touched it there and something behind u will read it there: its producer or a reader before
u, and a reader behind u, on one device. That holds in every schedule, for any u that takes time. The activations that a
backward pass reads are all in memory while the loss is computed, for example, unless their producers run once more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.bounds.ancestors import ancestors_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups

# Moments in a schedule that get a row per device, and the share of their bytes in which two of them must differ.
MOMENTS_AT_MOST = 4
UNLIKE = 0.15
# Tensors and weights below this share of a device's memory are left out, which only makes the rows weaker.
LEAST_SHARE = 1e-4
NO_UNIT = -1

# Groups that are all on the device.
Together = frozenset[int]


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """Bytes that a device keeps if any of the sets of groups in `wanted` is on it together.

    So it does for the sets in `spared`, unless a solution recomputes the unit `producer`.
    """

    size_bytes: int
    wanted: tuple[Together, ...]
    spared: tuple[Together, ...] = ()
    producer: int = NO_UNIT


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """The sum of all that is kept on the device is at most `capacity_bytes`."""

    device: int
    capacity_bytes: int
    kept: tuple[KeptBytes, ...]


def memory_rows(problem: Problem, groups: Groups, allowed: npt.NDArray[np.bool_] | None = None) -> list[MemoryRow]:
    """Rows of all devices that could be too small; none for the others.

    `allowed` (G×D) says where groups can be; by default on all devices that can run them.
    """
    arrays = problem.arrays
    able = groups.allowed if allowed is None else allowed
    weights = list(_weights(problem, groups))
    given = [0] * arrays.devices
    moments: list[list[KeptBytes]] = [[]]
    if problem.memory_mode == "sum":
        made, given = _made(problem, groups)
        moments = [made]
    elif problem.memory_mode == "liveness":
        moments = _moments(problem, groups) or moments
    found = []
    for device in range(arrays.devices):
        capacity = int(arrays.device_memory_bytes[device]) - given[device]
        for kept in moments:
            here = list(_possible([*weights, *kept], able[:, device], LEAST_SHARE * capacity))
            if sum(item.size_bytes for item in here) > capacity:
                found.append(MemoryRow(device, capacity, tuple(here)))
    return found


def _possible(kept: Sequence[KeptBytes], able: npt.NDArray[np.bool_], least: float) -> Iterator[KeptBytes]:
    """The bytes that a device may have to keep; those that depend on one group are added up."""
    single: dict[int, int] = {}
    for item in kept:
        wanted = tuple(one for one in item.wanted if all(able[group] for group in one))
        spared = tuple(one for one in item.spared if all(able[group] for group in one))
        if len(wanted) == 1 and len(wanted[0]) == 1 and not spared:
            group = next(iter(wanted[0]))
            single[group] = single.get(group, 0) + item.size_bytes
        elif (wanted or spared) and item.size_bytes >= least:
            yield replace(item, wanted=wanted, spared=spared)
    yield from (KeptBytes(size, (frozenset({group}),)) for group, size in sorted(single.items()) if size)


def _weights(problem: Problem, groups: Groups) -> Iterator[KeptBytes]:
    users: dict[str, set[int]] = {}
    for unit, group in zip(problem.units, groups.of_unit.tolist(), strict=True):
        for name in unit.weights:
            users.setdefault(name, set()).add(group)
    for name, using in sorted(users.items()):
        yield KeptBytes(problem.held_bytes[name], tuple(frozenset({group}) for group in sorted(using)))


def _made(problem: Problem, groups: Groups) -> tuple[list[KeptBytes], list[int]]:
    """Under `sum`: workspaces and outputs where they are made, and bytes per device of graph inputs."""
    arrays, of_unit = problem.arrays, groups.of_unit.tolist()
    given = [0] * arrays.devices
    made = [
        KeptBytes(size, (frozenset({group}),))
        for group, size in zip(of_unit, arrays.workspace_bytes.tolist(), strict=True)
        if size
    ]
    columns = (arrays.tensor_producer, arrays.tensor_home, arrays.tensor_bytes)
    for maker, home, size in zip(*(column.tolist() for column in columns), strict=True):
        if maker >= 0:
            made.append(KeptBytes(size, (frozenset({of_unit[maker]}),)))
        else:
            given[home] += size
    return made, given


def _moments(problem: Problem, groups: Groups) -> list[list[KeptBytes]]:
    """By liveness: what is kept while one of a few units runs, those with the most bytes first."""
    arrays = problem.arrays
    before = ancestors_of(arrays)
    takes_time = np.where(arrays.run_ns < 0, 1, arrays.run_ns).min(axis=1) > 0
    spans = _spans(problem, before)
    held = spans @ arrays.tensor_bytes
    chosen: list[int] = []
    for unit in np.argsort(-held, kind="stable").tolist():
        if not takes_time[unit] or not held[unit] or len(chosen) == MOMENTS_AT_MOST:
            continue
        unlike = [int((spans[unit] ^ spans[one]) @ arrays.tensor_bytes) for one in chosen]
        if all(size >= UNLIKE * held[unit] for size in unlike):
            chosen.append(unit)
    return [_kept_during(problem, groups, before, unit) for unit in chosen]


def _spans(problem: Problem, before: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """U×T: true where a tensor is touched before a unit and read behind it."""
    arrays = problem.arrays
    found = np.zeros((arrays.units, len(arrays.tensor_bytes)), dtype=bool)
    for tensor, (touching, reading) in enumerate(_users(problem)):
        if touching and reading:
            found[:, tensor] = before[:, touching].any(axis=1) & before[reading].any(axis=0)
    return found


def _users(problem: Problem) -> Iterator[tuple[list[int], list[int]]]:
    """Per tensor the units that need it in memory (its producer and its readers), and its readers."""
    arrays = problem.arrays
    for tensor, maker in enumerate(arrays.tensor_producer.tolist()):
        readers = arrays.consumer_units[arrays.consumer_offsets[tensor] : arrays.consumer_offsets[tensor + 1]].tolist()
        yield [maker, *readers] if maker >= 0 else readers, readers


def _kept_during(problem: Problem, groups: Groups, before: npt.NDArray[np.bool_], unit: int) -> list[KeptBytes]:
    """The bytes in memory while a unit runs: tensors that span it, its inputs and outputs, and its workspace."""
    arrays, of_unit = problem.arrays, groups.of_unit
    own = frozenset({int(of_unit[unit])})
    made = arrays.output_tensors[arrays.output_offsets[unit] : arrays.output_offsets[unit + 1]]
    found = [KeptBytes(int(arrays.workspace_bytes[unit] + arrays.tensor_bytes[made].sum()), (own,))]
    for tensor, (touching, reading) in enumerate(_users(problem)):
        producer = int(arrays.tensor_producer[tensor])
        again = producer >= 0 and problem.units[producer].phase == "forward"
        earlier = {int(of_unit[one]) for one in touching if before[unit, one]}
        sets: tuple[set[Together], set[Together]] = ({own} if unit in reading else set(), set())
        for reader in reading:
            if before[reader, unit]:
                # Of a producer that runs once more, other passes read what it makes the second time.
                late = again and problem.units[reader].phase != "forward"
                sets[late].update(frozenset({one, int(of_unit[reader])}) for one in earlier)
        wanted, spared = _least(sets[0]), _least(sets[1] - sets[0])
        if wanted or spared:
            found.append(KeptBytes(int(arrays.tensor_bytes[tensor]), wanted, spared, producer))
    return found


def _least(sets: set[Together]) -> tuple[Together, ...]:
    """The sets that hold no other one: a larger set is on a device only if the smaller one is."""
    return tuple(sorted((one for one in sets if not any(other < one for other in sets)), key=sorted))
