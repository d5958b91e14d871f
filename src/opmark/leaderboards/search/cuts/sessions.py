"""A subgraph priced as one session of one device: everything it runs, from plain inputs to plain outputs."""

from dataclasses import replace

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.simulate import costs_and_peaks


def session_ns(problem: Problem, units: Integers, device: int) -> int:
    """The ns of these units alone on a device that can run them all, as a runtime would measure them.

    Where the device has several slots, branches share them, and slow each other as the problem says. Tensors from
    elsewhere are turned into the device's own layout, tensors for elsewhere back into the plain one.
    """
    arrays = problem.arrays
    inside = np.zeros(arrays.units + 1, dtype=bool)
    inside[units] = True
    layout = arrays.boundary_ns.reshape(len(arrays.tensor_bytes), -1)[:, arrays.device_type[device]]
    made = inside[arrays.tensor_producer]  # a graph input has producer -1, the last entry, which is False
    tensor = np.repeat(np.arange(len(made)), np.diff(arrays.consumer_offsets))
    read = np.zeros(len(made), dtype=bool)
    leaves = arrays.tensor_output == 1
    read[tensor[inside[arrays.consumer_units]]] = True
    leaves[tensor[~inside[arrays.consumer_units]]] = True
    crossing = (read & ~made) | (made & leaves)
    return _alone_ns(problem, units, device) + int(layout[crossing].sum())


def _alone_ns(problem: Problem, units: Integers, device: int) -> int:
    run = problem.arrays.run_ns[units, device]
    if problem.arrays.device_slots[device] == 1 or len(units) == 1:
        return int(run.sum())
    own = {problem.units[unit].name for unit in units.tolist()}
    tensors = tuple(
        replace(tensor, consumers=tuple(name for name in tensor.consumers if name in own), output=False)
        for tensor in problem.tensors
        if tensor.producer in own
    )
    cluster = replace(problem.cluster, devices=(problem.cluster.devices[device],), links=(), host="", routes=())
    session = replace(
        problem,
        cluster=cluster,
        units=tuple(problem.units[unit] for unit in units.tolist()),
        tensors=tensors,
        objective="latency",
        unit="ns",
        profile="opsim1",
        arrivals=(),
        micro_batches=0,
        replication=False,
        contiguous=False,
        reference=None,
    )
    return int(costs_and_peaks(session, np.zeros((1, len(units)), dtype=np.int64))[0][0])
