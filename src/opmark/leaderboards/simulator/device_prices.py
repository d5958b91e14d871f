"""What a device pays for handing a tensor to the common memory, or fetching it: the host's, by way of its routes."""

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem


def device_prices(problem: Problem) -> tuple[Integers, Integers]:
    """M×D ns to send a tensor out and to take it in: the device's layout cost and the hops to or from the host.

    The host itself, and a device without a route, pay for the layout alone.
    """
    arrays = problem.arrays
    tensors, devices, types, links = (
        len(arrays.tensor_bytes),
        arrays.devices,
        int(arrays.sizes[3]),
        int(arrays.sizes[4]),
    )
    layout = arrays.boundary_ns.reshape(tensors, types)[:, arrays.device_type]
    hops = arrays.hop_ns.reshape(-1, max(1, links))[arrays.tensor_size_class] if links else np.zeros((tensors, 1))
    out, into = layout.copy(), layout.copy()
    for device in range(devices):
        for table, number in ((out, device * devices + arrays.host), (into, arrays.host * devices + device)):
            route = arrays.route_links[arrays.route_offsets[number] : arrays.route_offsets[number + 1]]
            if len(route):
                table[:, device] += hops[:, route].sum(axis=1)
    return out, into


def summed_bytes(problem: Problem, devices: Integers) -> Integers:
    """Peak bytes per row of devices (rows x U) and device where no times are known, by the problem's memory mode."""
    from opmark.leaderboards.simulator.loads import sum_rows
    from opmark.leaderboards.simulator.stash import stashed_rows

    if problem.memory_mode == "stash":
        return stashed_rows(problem, devices)
    found: Integers = sum_rows(*problem.arrays.packed, np.ascontiguousarray(devices).reshape(-1))
    return found.reshape(-1, problem.arrays.devices)


def unsupported(problem: Problem, devices: Integers) -> npt.NDArray[np.bool_]:
    """Which rows place a unit where it cannot run."""
    run = problem.arrays.run_ns
    return np.asarray((run[np.arange(len(run)), devices] < 0).any(axis=1), dtype=np.bool_)
