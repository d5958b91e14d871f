"""Columns of the powers of two that divide a kernel's sizes.

Inner loops take 4 to 64 elements at once, and what does not fill one runs through a slower path. Sizes and their tails
for one vector width do not tell: an 8-bit convolution packs four channels, and blocks of sixteen.
"""

import numpy as np

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs

# Sizes that inner loops run over; the others are counts, steps and flags.
LOOP_SIZES = frozenset(
    {
        *("m", "n", "k", "along", "inner", "last", "columns", "head_size", "hidden", "features"),
        *("channels", "channels_in", "channels_out", "group_channels_in", "group_channels_out"),
        *("gemm_m", "gemm_k", "depth", "rows", "output_width", "gate_width", "run"),
    }
)
_LARGEST_POWER = 64
# Sixteen elements are the usual block: the share of the last one that is empty.
_BLOCK = 16


def aligned(inputs: Inputs) -> Inputs:
    """Append the logarithm of the largest power of two, 64 at most, in each size, and the padding to blocks of 16.

    A smooth surface can follow these columns, too.
    """
    columns: dict[str, Floats] = {}
    for name, size in inputs.raw.items():
        if name in LOOP_SIZES:
            columns[f"{name}_power"] = np.log2(_power(size))
            columns[f"{name}_block_padding"] = np.ceil(size / _BLOCK) * _BLOCK / np.maximum(size, 1.0) - 1
    return inputs.with_columns(columns)


def _power(size: Floats) -> Floats:
    """Find the largest power of two, 64 at most, that divides each size; 1 for a size of 0."""
    whole = np.maximum(size, 0).astype(np.int64)
    lowest_bit = np.where(whole > 0, whole & -whole, 1)
    power: Floats = np.minimum(lowest_bit, _LARGEST_POWER).astype(np.float64)
    return power
