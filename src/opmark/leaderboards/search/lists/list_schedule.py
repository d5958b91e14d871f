"""Schedules built by list scheduling: by earliest finish in a given order, or by earliest start.

Both estimate the queues of links: a link carries one tensor at a time, and a tensor travels once to each device.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.lists.ranks import readers_of_units, topological_position
from opmark.leaderboards.search.lists.travel import return_ns

if TYPE_CHECKING:
    from opmark.leaderboards.search.lists.assignment_loops import ListCosts, ListTables


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchedule:
    """A device, a start and an end (ns) per unit, and the units of each device in the order of their starts."""

    device: Integers
    start_ns: Integers
    end_ns: Integers
    order: dict[int, list[int]]

    def placement(self, priority: Integers | None = None) -> Placement:
        """The schedule as a placement whose devices keep their order."""
        return Placement(device=self.device, priority=priority, order=self.order)


def schedule_by_earliest_finish(
    problem: Problem,
    order: Integers,
    *,
    contention: bool = True,
    lookahead_ns: Integers | None = None,
    pinned: Integers | None = None,
) -> ListSchedule:
    """Assign the units in `order`, which respects precedence, each to the device where it finishes first.

    A unit may use an idle gap (insertion). To the finish time counts what must follow: `lookahead_ns` (U×D), and the
    return of graph outputs to the host. A unit goes to its `pinned` device (-1: none) if its group may run there.
    Without `contention`, links carry any number of tensors at once.
    """
    from opmark.leaderboards.search.lists.assignment_loops import assign_by_earliest_finish

    if pinned is None:
        pinned = np.full(problem.arrays.units, -1, dtype=np.int64)
    ahead = return_ns(problem) if lookahead_ns is None else np.maximum(lookahead_ns, return_ns(problem))
    tables = _tables(problem, contention=contention)
    assign_by_earliest_finish(
        np.ascontiguousarray(order, dtype=np.int64), pinned, np.ascontiguousarray(ahead, dtype=np.int64), tables
    )
    return _schedule(problem, tables)


def schedule_by_earliest_start(
    problem: Problem,
    rank: Integers,
    *,
    contention: bool = True,
    favourite: Integers | None = None,
    reserved_ns: Integers | None = None,
) -> ListSchedule:
    """Assign, again and again, the ready unit and the device with the earliest start.

    Ties go to the earlier finish, then to the higher `rank`. After its last unit a device waits up to `reserved_ns` of
    that unit for the unit's `favourite` reader (-1: none).
    """
    from opmark.leaderboards.search.lists.assignment_loops import assign_by_earliest_start

    units = problem.arrays.units
    if favourite is None or reserved_ns is None:
        favourite, reserved_ns = np.full(units, -1, dtype=np.int64), np.zeros(units, dtype=np.int64)
    readers = readers_of_units(problem)
    tables = _tables(problem, contention=contention)
    assign_by_earliest_start(
        np.ascontiguousarray(rank, dtype=np.int64),
        np.bincount(readers[1], minlength=units).astype(np.int64),
        readers,
        (favourite, reserved_ns),
        tables,
    )
    return _schedule(problem, tables)


def _tables(problem: Problem, *, contention: bool) -> "ListTables":
    """The costs of a problem and an empty schedule."""
    from opmark.leaderboards.search.lists.assignment_loops import Assignment, ListMemory, ListTables, SlotTimeline

    arrays, groups = problem.arrays, groups_of(problem)
    devices, ports = arrays.devices, int(arrays.sizes[5])
    slots, widest = int(arrays.device_slots.sum()), int(np.diff(arrays.input_offsets).max(initial=0))

    def zeros(*shape: int) -> Integers:
        return np.zeros(shape, dtype=np.int64)

    def unknown(*shape: int) -> Integers:
        return np.full(shape, -1, dtype=np.int64)

    return ListTables(
        costs=_costs(problem, contention=contention),
        memory=ListMemory(
            group_of_unit=groups.of_unit,
            allowed=groups.allowed,
            size_bytes=groups.size_bytes,
            memory_bytes=arrays.device_memory_bytes,
            held_bytes=zeros(devices),
            device=unknown(groups.count),
        ),
        timeline=SlotTimeline(
            first_slot=np.concatenate([[0], np.cumsum(arrays.device_slots)]).astype(np.int64),
            filled=zeros(slots),
            start=zeros(slots, arrays.units),
            end=zeros(slots, arrays.units),
            unit=zeros(slots, arrays.units),
        ),
        assignment=Assignment(
            device=unknown(arrays.units),
            start=zeros(arrays.units),
            end=zeros(arrays.units),
            arrival=unknown(len(arrays.tensor_bytes), devices),
            port_free=zeros(ports),
            trial_free=zeros(ports),
            trial_mark=zeros(ports),
            trial=zeros(1),
            tensor=zeros(widest),
            produced=zeros(widest),
        ),
    )


def _costs(problem: Problem, *, contention: bool) -> "ListCosts":
    """The times and routes of a problem as the compiled loops read them."""
    from opmark.leaderboards.search.lists.assignment_loops import ListCosts

    arrays = problem.arrays
    types = int(arrays.sizes[3])
    return ListCosts(
        run_ns=arrays.run_ns,
        input_offsets=arrays.input_offsets,
        input_tensors=arrays.input_tensors,
        tensor_producer=arrays.tensor_producer,
        tensor_home=arrays.tensor_home,
        tensor_size_class=arrays.tensor_size_class,
        route_offsets=arrays.route_offsets,
        route_links=arrays.route_links,
        link_port=arrays.link_port,
        hop_ns=arrays.hop_ns.reshape(-1, max(1, len(arrays.link_port))),
        boundary_ns=arrays.boundary_ns.reshape(-1, types),
        device_type=arrays.device_type,
        contention=int(contention),
    )


def _schedule(problem: Problem, tables: "ListTables") -> ListSchedule:
    """The schedule that the loops have built; spans of equal start and end stand in topological order."""
    timeline, assignment = tables.timeline, tables.assignment
    position = topological_position(problem)
    order = {}
    for device in range(problem.arrays.devices):
        slots = range(int(timeline.first_slot[device]), int(timeline.first_slot[device + 1]))
        units = np.concatenate([timeline.unit[slot, : timeline.filled[slot]] for slot in slots])
        order[device] = units[np.lexsort((position[units], assignment.end[units], assignment.start[units]))].tolist()
    return ListSchedule(device=assignment.device, start_ns=assignment.start, end_ns=assignment.end, order=order)
