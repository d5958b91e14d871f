"""Run opsim 1 on placements: one with its whole schedule, or many with only their costs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.placement import Placement
from opmark.leaderboards.problem import Problem
from opmark.leaderboards.problem_arrays import Integers, ProblemArrays
from opmark.leaderboards.profiles import OPSIM1, Profile

# The cost of a placement that cannot run at all.
INVALID_COST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When everything ran, in ns: units by number, and transfers, whose hops lie in rows of `hop_offsets`.

    `peak_bytes` is per device, weights included.
    """

    cost_ns: int
    unit_start_ns: Integers
    unit_end_ns: Integers
    transfer_tensor: Integers
    transfer_destination: Integers
    hop_offsets: Integers
    hop_link: Integers
    hop_start_ns: Integers
    hop_end_ns: Integers
    peak_bytes: Integers


def simulate(problem: Problem, placement: Placement, profile: Profile = OPSIM1) -> Schedule:
    """The schedule of one placement; memory is reported, not enforced.

    Raises `PlacementError` where a device cannot run a unit, a tensor has no way, or orders block one another.
    """
    from opmark.leaderboards import engine

    arrays = problem.arrays
    outputs = _room(arrays)
    order_offsets, order_units = placement.order_rows(arrays.devices)
    priority = arrays.default_priority if placement.priority is None else placement.priority
    compiled: Any = engine.run
    status = compiled(
        *arrays.packed, placement.device, priority, order_offsets, order_units, int(profile.contention), outputs
    )
    info = outputs[0].tolist()
    if status == engine.UNSUPPORTED:
        unit, device = problem.units[info[3]].name, problem.cluster.devices[info[4]].name
        raise PlacementError(f"device {device!r} cannot run unit {unit!r}: it has no exec_ns for that type")
    if status == engine.NO_ROUTE:
        tensor, device = problem.tensors[info[3]].name, problem.cluster.devices[info[4]].name
        raise PlacementError(f"no route brings tensor {tensor!r} to device {device!r}")
    if status == engine.STUCK:
        raise PlacementError("the orders of the devices block one another")
    _, start, end, _, tensor_of, destination, hop_offsets, hop_link, hop_start, hop_end, peak = outputs
    cost, transfers, used = info[:3]
    return Schedule(
        cost_ns=cost,
        unit_start_ns=start,
        unit_end_ns=end,
        transfer_tensor=tensor_of[:transfers],
        transfer_destination=destination[:transfers],
        hop_offsets=hop_offsets[: transfers + 1],
        hop_link=hop_link[:used],
        hop_start_ns=hop_start[:used],
        hop_end_ns=hop_end[:used],
        peak_bytes=peak,
    )


def fits(problem: Problem, schedule: Schedule) -> bool:
    """Whether no device ever holds more than it has."""
    return bool((schedule.peak_bytes <= problem.arrays.device_memory_bytes).all())


def simulate_many(
    problem: Problem,
    devices: Integers,
    priorities: Integers | None = None,
    *,
    profile: Profile = OPSIM1,
    enforce_memory: bool = True,
) -> Integers:
    """The cost in ns of each row of `devices` (rows x units), `INVALID_COST` where it cannot run or does not fit.

    `priorities` has one row per placement or a single one for all; without it the default rank is used.
    """
    from opmark.leaderboards import engine

    arrays = problem.arrays
    flat = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1)
    priority = arrays.default_priority if priorities is None else np.ascontiguousarray(priorities, dtype=np.int64)
    peaks = np.zeros(len(flat) // arrays.units * arrays.devices, dtype=np.int64)
    no_order = np.zeros(arrays.devices + 1, dtype=np.int64)
    compiled: Any = engine.run_many
    costs: Integers = compiled(
        *arrays.packed,
        flat,
        priority.reshape(-1),
        no_order,
        no_order[:0],
        int(profile.contention),
        _room(arrays),
        peaks,
    )
    if enforce_memory:
        over = (peaks.reshape(-1, arrays.devices) > arrays.device_memory_bytes).any(axis=1)
        costs[over] = INVALID_COST
    return costs


def _room(arrays: ProblemArrays) -> tuple[Integers, ...]:
    """Arrays that hold the schedule of any placement, even with every tensor sent to every reader."""
    tensors = len(arrays.tensor_bytes)
    transfers = len(arrays.consumer_units) + tensors
    hops = transfers * int(np.diff(arrays.route_offsets).max(initial=0))
    sizes = (5, arrays.units, arrays.units, tensors + 1, transfers, transfers, transfers + 1, hops, hops, hops)
    return tuple(np.zeros(size, dtype=np.int64) for size in (*sizes, arrays.devices))
