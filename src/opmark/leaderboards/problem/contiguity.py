"""Contiguous placements: no path leaves a device and comes back to it.

Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020, section 3. The rule
holds for forward units only, since a backward unit always returns to its forward one.
"""

import numpy as np

from opmark.leaderboards.problem.integers import Integers
from opmark.leaderboards.problem.problem import Problem


def returning_unit(problem: Problem, device: Integers) -> tuple[int, int] | None:
    """A forward unit to whose device a path comes back, and the unit before it on that path; None if contiguous."""
    arrays = problem.arrays
    left = np.zeros(arrays.units, dtype=object)  # bit sets: the devices that some path to a unit has left
    place = device.tolist()
    forward = [unit.phase == "forward" for unit in problem.units]
    producer = arrays.tensor_producer.tolist()
    offsets, tensors = arrays.input_offsets.tolist(), arrays.input_tensors.tolist()
    for unit in arrays.topological.tolist():
        if not forward[unit]:
            continue
        for tensor in tensors[offsets[unit] : offsets[unit + 1]]:
            before = producer[tensor]
            if before < 0 or not forward[before]:
                continue
            gone = left[before] | (0 if place[before] == place[unit] else 1 << place[before])
            if gone >> place[unit] & 1:
                return unit, before
            left[unit] |= gone
    return None


def contiguous_rows(problem: Problem, devices: Integers) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """A mask of the rows of devices per unit that are contiguous."""
    from opmark.leaderboards.problem.sweeps import returning_rows

    arrays = problem.arrays
    forward = np.array([unit.phase == "forward" for unit in problem.units], dtype=np.int64)
    flat = np.ascontiguousarray(devices, dtype=np.int64).reshape(-1)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        returning_rows(*arrays.packed, arrays.topological, forward, flat) == 0
    )
    return found
