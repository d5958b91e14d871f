"""The event simulation of one pass through a graph: the compiled engine, called for one placement."""

from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.arrays import EventRules, ProblemArrays
from opmark.leaderboards.problem.packing import Room
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import Schedule


def run_events(problem: Problem, placement: Placement, rules: EventRules) -> Schedule:
    """One pass through the graph, its latency as cost.

    Raises `PlacementError` if a device cannot run a unit, a tensor has no route, or orders block one another.
    """
    return run_arrays(problem, problem.arrays.under(rules), placement, rules)


def run_arrays(problem: Problem, arrays: ProblemArrays, placement: Placement, rules: EventRules) -> Schedule:
    """As `run_events`, for `arrays` of the problem's units with times or requests of their own."""
    from opmark.leaderboards.simulator import engine

    room = room_for(arrays)
    order_offsets, order_units = placement.order_rows(arrays.devices)
    priority = arrays.default_priority if placement.priority is None else placement.priority
    compiled: Any = engine.run
    status = compiled(
        *arrays.packed, placement.device, priority, order_offsets, order_units, int(rules.contention), room
    )
    latency, transfers, hops, culprit, device = room.info.tolist()
    if status != engine.FINISHED:
        raise _failure(problem, status, culprit, device)
    return Schedule(
        cost_ns=latency,
        latency_ns=latency,
        unit_start_ns=room.unit_start,
        unit_end_ns=room.unit_end,
        transfer_tensor=room.transfer_tensor[:transfers],
        transfer_destination=room.transfer_destination[:transfers],
        hop_offsets=room.hop_offsets[: transfers + 1],
        hop_link=room.hop_link[:hops],
        hop_start_ns=room.hop_start[:hops],
        hop_end_ns=room.hop_end[:hops],
        peak_bytes=room.peak,
    )


def _failure(problem: Problem, status: int, culprit: int, device: int) -> PlacementError:
    from opmark.leaderboards.simulator import engine

    if status == engine.STUCK:
        return PlacementError("the orders of the devices block one another")
    name = problem.cluster.devices[device].name
    if status == engine.NO_ROUTE:
        return PlacementError(f"no route brings tensor {problem.tensors[culprit].name!r} to device {name!r}")
    return cannot_run(name, problem.units[culprit].name)


def cannot_run(device: str, unit: str) -> PlacementError:
    """The error for a unit on a device of a type for which it has no time."""
    return PlacementError(f"device {device!r} cannot run unit {unit!r}: it has no exec_ns for that type")


def room_for(arrays: ProblemArrays) -> Room:
    """Arrays that hold the schedule of any placement, even with every tensor sent to every reader."""
    tensors = len(arrays.tensor_bytes)
    transfers = len(arrays.consumer_units) + tensors
    hops = transfers * int(np.diff(arrays.route_offsets).max(initial=0))
    sizes = (5, arrays.units, arrays.units, tensors + 1, transfers, transfers, transfers + 1, hops, hops, hops)
    return Room(*(np.zeros(size, dtype=np.int64) for size in (*sizes, arrays.devices)))
