"""The max-load model of dnn-partitioning: a device computes and communicates in turn, the busiest one sets the pace.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 3: a device
pays for every unit it runs, once for each tensor it takes in, and once for each it sends out.
"""

import numpy as np

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PublishedModel
from opmark.leaderboards.problem.schedule import INVALID_COST, Schedule
from opmark.leaderboards.simulator.direct_models import (
    check_supported,
    device_prices,
    serial_schedule,
    summed_bytes,
    unsupported,
)


class MaxLoad:
    """ns per sample of the busiest device."""

    def schedule(self, problem: Problem, placement: Placement) -> Schedule:
        """Every device takes everything in, then computes. Raises `PlacementError` for replicas: the model has none."""
        if placement.replicas:
            raise PlacementError("the max-load model knows no replicas")
        check_supported(problem, placement.device)
        loads, taken = _loads(problem, placement.device[None, :])
        return serial_schedule(problem, placement.device, taken[0].tolist(), int(loads.max()))

    def costs(self, problem: Problem, devices: Integers) -> tuple[Integers, Integers]:
        """The largest load per row."""
        loads, _ = _loads(problem, devices)
        costs = loads.max(axis=1)
        costs[unsupported(problem, devices)] = INVALID_COST
        return costs, summed_bytes(problem, devices)


def _loads(problem: Problem, devices: Integers) -> tuple[Integers, Integers]:
    """rows×D loads in ns, and the part of them that is for taking in."""
    from opmark.leaderboards.simulator.loads import serial_rows

    arrays = problem.arrays
    out, into = device_prices(problem)
    flat = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1)
    loads, taken = serial_rows(*arrays.packed, arrays.run_ns.reshape(-1), out.reshape(-1), into.reshape(-1), flat)
    return loads.reshape(-1, arrays.devices), taken.reshape(-1, arrays.devices)


PROFILE = PublishedModel(
    name="maxload_serial", summary="dnn-partitioning's max load: compute and communication in turn", model=MaxLoad()
)
