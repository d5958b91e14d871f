"""Memory of a full pipeline in training: every sample in flight keeps what its backward pass will read.

Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019, section 3.3: a stage keeps
as many samples as there are workers from it to the end, over its own replicas.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.problem.problem import Problem


def stashed_rows(problem: Problem, devices: Integers) -> Integers:
    """Peak bytes per row of devices (rows x units) and device, without replicas."""
    return _rows(problem, devices, np.ones(problem.arrays.devices, dtype=np.int64))


def stashed_bytes(problem: Problem, placement: Placement) -> Integers:
    """Peak bytes per device of one placement; a replica holds what its stage holds."""
    replicas = np.ones(problem.arrays.devices, dtype=np.int64)
    for number, row in placement.replicas.items():
        replicas[number] += len(row)
    peak = _rows(problem, placement.device[None, :], replicas)[0]
    return with_replicas(peak, placement)


def with_replicas(peak: Integers, placement: Placement) -> Integers:
    """The peaks with every replica holding what its stage holds."""
    for number, row in placement.replicas.items():
        for other in row:
            peak[other] += peak[number]
    return peak


def _rows(problem: Problem, devices: Integers, replicas: Integers) -> Integers:
    from opmark.leaderboards.simulator.loads import stash_rows

    forward = np.array([unit.phase == "forward" for unit in problem.units], dtype=np.int64)
    flat = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1)
    found: Integers = stash_rows(*problem.arrays.packed, flat, replicas, forward, problem.micro_batches)
    return found.reshape(-1, problem.arrays.devices)
