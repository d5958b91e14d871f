"""Schedules that compiled list scheduling builds: in a given sequence of units, or by earliest start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.leaderboards.problem.arrays import ProblemArrays
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import Groups, groups_of

NEVER_NS = 2**50


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltSchedule:
    """A device, a start and an end (ns) per unit, and the units of each device in the order in which they run."""

    device: Integers
    start_ns: Integers
    end_ns: Integers
    order: dict[int, list[int]]

    def placement(self, priority: Integers | None = None) -> Placement:
        """The schedule as a placement in which every device keeps its order."""
        return Placement(device=self.device, priority=priority, order=self.order)


def build_in_sequence(
    problem: Problem,
    sequence: Integers,
    *,
    contention: bool = True,
    ahead_ns: Integers | None = None,
    forced: Integers | None = None,
) -> BuiltSchedule:
    """Units in `sequence` (which respects precedence), each where it ends first, with insertion into idle gaps.

    What must follow a unit counts too: `ahead_ns` (U×D), and the way of its graph outputs back to the host. A unit
    goes where it is `forced` (a device, or -1) if its class may go there.
    """
    from opmark.leaderboards.search.lists import assignment_loops as list_engine

    arrays = problem.arrays
    ahead = return_ns(problem) if ahead_ns is None else np.maximum(ahead_ns, return_ns(problem))
    wanted = np.full(arrays.units, -1, dtype=np.int64) if forced is None else forced
    room = _Room(problem, contention=contention)
    compiled: Any = list_engine.in_sequence
    compiled(
        np.ascontiguousarray(sequence, dtype=np.int64),
        wanted,
        arrays.run_ns.reshape(-1),
        np.ascontiguousarray(ahead, dtype=np.int64).reshape(-1),
        *room.compiled,
    )
    return room.built()


def build_earliest_first(
    problem: Problem,
    rank: Integers,
    *,
    contention: bool = True,
    favourite: Integers | None = None,
    wake_ns: Integers | None = None,
) -> BuiltSchedule:
    """Again and again the ready unit and the device that can start first; ties by earliest end, then falling `rank`.

    A device waits up to `wake_ns` after the end of its last unit for that unit's `favourite` reader (-1: none).
    """
    from opmark.leaderboards.search.lists import assignment_loops as list_engine

    arrays = problem.arrays
    offsets, readers = reader_rows(problem)
    waiting = np.bincount(readers, minlength=arrays.units).astype(np.int64)
    room = _Room(problem, contention=contention)
    compiled: Any = list_engine.earliest_first
    compiled(
        np.ascontiguousarray(rank, dtype=np.int64),
        waiting,
        (offsets, readers),
        np.full(arrays.units, -1, dtype=np.int64) if favourite is None else favourite,
        np.zeros(arrays.units, dtype=np.int64) if wake_ns is None else wake_ns,
        arrays.run_ns.reshape(-1),
        *room.compiled,
    )
    return room.built()


def ready_sequence(problem: Problem, priority: Integers) -> Integers:
    """Units in the order in which a queue of ready ones would give them out, the largest `priority` first."""
    import heapq

    offsets, readers = reader_rows(problem)
    waiting = np.bincount(readers, minlength=problem.arrays.units).tolist()
    flat, starts, value = readers.tolist(), offsets.tolist(), (-np.asarray(priority)).tolist()
    ready = [(value[unit], unit) for unit, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    sequence = []
    while ready:
        _, unit = heapq.heappop(ready)
        sequence.append(unit)
        for reader in flat[starts[unit] : starts[unit + 1]]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (value[reader], reader))
    return np.array(sequence, dtype=np.int64)


def reader_rows(problem: Problem) -> tuple[Integers, Integers]:
    """The readers of each unit as compressed rows, one entry per tensor and reader."""
    arrays = problem.arrays
    lengths = np.diff(arrays.consumer_offsets)
    producer = np.repeat(arrays.tensor_producer, lengths)
    inside = np.flatnonzero(producer >= 0)
    inside = inside[np.argsort(producer[inside], kind="stable")]
    counts = np.bincount(producer[inside], minlength=arrays.units)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return offsets, np.ascontiguousarray(arrays.consumer_units[inside], dtype=np.int64)


def travel_ns(problem: Problem, tensors: Integers | None = None, *, to: Sequence[int] | None = None) -> Integers:
    """M×D×D: how long a tensor (of those given) takes between devices on empty links; `NEVER_NS` without a route.

    With `to` only the columns of these destinations are filled in, the others are 0.
    """
    arrays = problem.arrays
    count, devices = len(arrays.tensor_bytes), arrays.devices
    links = max(1, len(arrays.link_port))
    chosen = slice(None) if tensors is None else tensors
    hops = arrays.hop_ns.reshape(-1, links)[arrays.tensor_size_class[chosen]] if len(arrays.link_port) else None
    layout = arrays.boundary_ns.reshape(count, arrays.sizes[3])[chosen][:, arrays.device_type]
    found = np.zeros((len(layout), devices, devices), dtype=np.int64)
    for source in range(devices):
        for destination in range(devices) if to is None else to:
            number = source * devices + destination
            route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]]
            if source != destination:
                way = NEVER_NS if hops is None or not len(route) else hops[:, route].sum(axis=1)
                found[:, source, destination] = way
                if len(route):
                    found[:, source, destination] += layout[:, source] + layout[:, destination]
    return found


def mean_travel_ns(problem: Problem) -> Integers:
    """Per tensor, its mean travel time over all ordered pairs of devices with a route, in ns."""
    arrays = problem.arrays
    joined = np.diff(arrays.route_offsets).reshape(arrays.devices, arrays.devices) > 0
    np.fill_diagonal(joined, val=False)
    # every pair's hops summed at once: how many of the pairs a link is for, times what a tensor takes on it
    pair = np.repeat(joined.reshape(-1), np.diff(arrays.route_offsets))
    links = max(1, len(arrays.link_port))
    uses = np.bincount(arrays.route_links[pair], minlength=links)
    total = (arrays.hop_ns.reshape(-1, links) @ uses)[arrays.tensor_size_class] if pair.any() else 0
    ends = np.bincount(arrays.device_type, weights=joined.sum(axis=0) + joined.sum(axis=1), minlength=arrays.sizes[3])
    total = total + arrays.boundary_ns.reshape(-1, int(arrays.sizes[3])) @ ends.astype(np.int64)
    mean: Integers = np.rint(total / max(1, int(joined.sum()))).astype(np.int64)
    return mean


def return_ns(problem: Problem) -> Integers:
    """U×D: how long a unit's graph outputs need from a device to the host, on empty links."""
    arrays = problem.arrays
    found = np.zeros((arrays.units, arrays.devices), dtype=np.int64)
    wanted = np.flatnonzero((arrays.tensor_output == 1) & (arrays.tensor_producer >= 0))
    if not len(wanted):
        return found
    host = arrays.host
    np.maximum.at(found, arrays.tensor_producer[wanted], travel_ns(problem, wanted, to=(host,))[:, :, host])
    return found


class _Room:
    """What compiled list scheduling reads and fills."""

    def __init__(self, problem: Problem, *, contention: bool) -> None:
        arrays: ProblemArrays = problem.arrays
        groups: Groups = groups_of(problem)
        slots = int(arrays.device_slots.sum())
        ports = int(arrays.sizes[5])
        widest = int(np.diff(arrays.input_offsets).max(initial=0))
        sizes = np.array([arrays.devices, arrays.sizes[4], arrays.sizes[3], contention], dtype=np.int64)
        tables = (
            arrays.input_offsets,
            arrays.input_tensors,
            arrays.tensor_producer,
            arrays.tensor_home,
            arrays.route_offsets,
            arrays.route_links,
            arrays.link_port,
            arrays.hop_ns,
            arrays.tensor_size_class,
            arrays.boundary_ns,
            arrays.device_type,
            sizes,
        )
        self._device = np.full(arrays.units, -1, dtype=np.int64)
        self._start, self._end = np.zeros(arrays.units, dtype=np.int64), np.zeros(arrays.units, dtype=np.int64)
        state = (
            self._device,
            self._end,
            np.zeros(ports, dtype=np.int64),
            np.full(len(arrays.tensor_bytes) * arrays.devices, -1, dtype=np.int64),
            np.zeros(ports, dtype=np.int64),
            np.zeros(ports + 1, dtype=np.int64),
            np.zeros(widest, dtype=np.int64),
            np.zeros(widest, dtype=np.int64),
        )
        room = (
            groups.of_unit,
            groups.allowed.reshape(-1).astype(np.int64),
            groups.size_bytes,
            arrays.device_memory_bytes,
            np.zeros(arrays.devices, dtype=np.int64),
            np.full(groups.count, -1, dtype=np.int64),
        )
        self._position = np.empty(arrays.units, dtype=np.int64)
        self._position[arrays.topological] = np.arange(arrays.units)
        self._slot_base = np.concatenate([[0], np.cumsum(arrays.device_slots)]).astype(np.int64)
        self._count = np.zeros(slots, dtype=np.int64)
        self._lines = tuple(np.zeros(slots * arrays.units, dtype=np.int64) for _ in range(3))
        self.compiled = (tables, state, room, (self._slot_base, self._count, *self._lines), self._start)

    def built(self) -> BuiltSchedule:
        order = {}
        width = len(self._device)
        for device in range(len(self._slot_base) - 1):
            slots = range(int(self._slot_base[device]), int(self._slot_base[device + 1]))
            row = np.concatenate(
                [self._lines[2][slot * width : slot * width + int(self._count[slot])] for slot in slots]
            )
            order[device] = row[np.lexsort((self._position[row], self._end[row], self._start[row]))].tolist()
        return BuiltSchedule(device=self._device, start_ns=self._start, end_ns=self._end, order=order)
