"""The units that must have ended before a unit starts, and those that cannot start before it has ended."""

import numpy as np
import numpy.typing as npt

from opmark.leaderboards.problem.arrays import ProblemArrays

# A table of so many units squared takes a few megabytes.
UNITS_AT_MOST = 2_000


def ancestors_of(arrays: ProblemArrays) -> npt.NDArray[np.bool_]:
    """U×U: row u is true for every unit before u; all false beyond `UNITS_AT_MOST` units."""
    found = np.zeros((arrays.units, arrays.units), dtype=bool)
    if arrays.units > UNITS_AT_MOST:
        return found
    for unit in arrays.topological.tolist():
        for tensor in arrays.input_tensors[arrays.input_offsets[unit] : arrays.input_offsets[unit + 1]].tolist():
            maker = int(arrays.tensor_producer[tensor])
            if maker >= 0:
                found[unit] |= found[maker]
                found[unit, maker] = True
    return found
