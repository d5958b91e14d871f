"""A schedule for models that only know how long each device is busy: its units one after the other."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.simulate import Schedule


def check_supported(problem: Problem, device: Integers) -> None:
    """Raise `PlacementError` for a unit on a device that cannot run it."""
    run = problem.arrays.run_ns
    for unit in np.flatnonzero(run[np.arange(len(run)), device] < 0).tolist():
        names = problem.cluster.devices[int(device[unit])].name, problem.units[unit].name
        raise PlacementError(f"device {names[0]!r} cannot run unit {names[1]!r}: it has no exec_ns for that type")


def serial_schedule(problem: Problem, device: Integers, first_ns: Sequence[int], cost: int | Fraction) -> Schedule:
    """Every device runs its units in topological order from `first_ns` (per device) on; no transfer is shown."""
    arrays = problem.arrays
    clock = list(first_ns)
    start, end = np.zeros(arrays.units, dtype=np.int64), np.zeros(arrays.units, dtype=np.int64)
    for unit in arrays.topological.tolist():
        where = int(device[unit])
        start[unit] = clock[where]
        clock[where] += int(arrays.run_ns[unit, where])
        end[unit] = clock[where]
    return timed_schedule(problem, device, (start, end), cost)


def timed_schedule(
    problem: Problem, device: Integers, span: tuple[Integers, Integers], cost: int | Fraction
) -> Schedule:
    """A schedule of given starts and ends without transfers."""
    from opmark.leaderboards.simulator.device_prices import summed_bytes

    none = np.zeros(0, dtype=np.int64)
    return Schedule(
        cost_ns=ceil(cost),
        exact_cost=cost if isinstance(cost, Fraction) else None,
        latency_ns=max(int(span[1].max()), ceil(cost)),
        unit_start_ns=span[0],
        unit_end_ns=span[1],
        transfer_tensor=none,
        transfer_destination=none,
        hop_offsets=np.zeros(1, dtype=np.int64),
        hop_link=none,
        hop_start_ns=none,
        hop_end_ns=none,
        peak_bytes=summed_bytes(problem, device[None, :])[0],
    )
