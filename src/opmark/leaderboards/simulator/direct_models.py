"""Pieces of the published models that need no events: prices of transfers, memory, and schedules without transfers."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import Schedule
from opmark.leaderboards.simulator.events import cannot_run
from opmark.leaderboards.simulator.memory import stashed_rows


def device_prices(problem: Problem) -> tuple[Integers, Integers]:
    """M×D ns to send a tensor out and to take it in: the device's layout cost and the hops to or from the host.

    The host itself, and a device without a route, pay for the layout alone.
    """
    arrays = problem.arrays
    tensors, devices, links = len(arrays.tensor_bytes), arrays.devices, arrays.sizes.links
    layout = arrays.boundary_ns.reshape(tensors, arrays.sizes.types)[:, arrays.device_type]
    hops = arrays.hop_ns.reshape(-1, max(1, links))[arrays.tensor_size_class] if links else np.zeros((tensors, 1))
    out, into = layout.copy(), layout.copy()
    for device in range(devices):
        for table, number in ((out, device * devices + arrays.host), (into, arrays.host * devices + device)):
            route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]]
            if len(route):
                table[:, device] += hops[:, route].sum(axis=1)
    return out, into


def summed_bytes(problem: Problem, devices: Integers) -> Integers:
    """Peak bytes per row of devices (rows x U) and device if no times are known, by the problem's memory mode."""
    from opmark.leaderboards.simulator.loads import sum_rows

    if problem.memory_mode == "stash":
        return stashed_rows(problem, devices)
    found: Integers = sum_rows(*problem.arrays.packed, np.ascontiguousarray(devices).reshape(-1))
    return found.reshape(-1, problem.arrays.devices)


def unsupported(problem: Problem, devices: Integers) -> npt.NDArray[np.bool_]:
    """A mask of the rows that place a unit where it cannot run."""
    run = problem.arrays.run_ns
    return np.asarray((run[np.arange(len(run)), devices] < 0).any(axis=1), dtype=np.bool_)


def check_supported(problem: Problem, device: Integers) -> None:
    """Raise `PlacementError` for a unit on a device that cannot run it."""
    run = problem.arrays.run_ns
    for unit in np.flatnonzero(run[np.arange(len(run)), device] < 0).tolist():
        raise cannot_run(problem.cluster.devices[int(device[unit])].name, problem.units[unit].name)


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
