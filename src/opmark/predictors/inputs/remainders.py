"""Columns of what is left of a kernel's sizes after whole vectors, tiles and unrolled loops.

A loop takes 4 to 64 elements at once, and computes those that are left one by one, each as slowly as a whole vector or
more so. The power of two that divides a size tells whether some are left, but not how many.
"""

import numpy as np

from opmark.predictors.inputs.alignment import LOOP_SIZES
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.small_images import image_positions

_SIZES = LOOP_SIZES | {
    *("height", "width", "output_height", "output_width", "planes", "outer", "elements", "output_elements"),
    *("second_elements", "third_elements", "smallest_run", "source_elements", "kept_elements", "moved"),
    *("query_length", "key_length", "value_size", "products", "classes", "window"),
}
_AT_ONCE = (4, 8, 16, 32, 64)


def with_remainders(inputs: Inputs) -> Inputs:
    """Append the logarithm of 1 and the remainder of each size, by 4, 8, 16, 32 and 64.

    A smooth surface can follow these columns, too.
    """
    sizes = {name: size for name, size in inputs.raw.items() if name in _SIZES}
    # loops and matrix products run over a whole image
    sizes |= image_positions(inputs)
    columns: dict[str, Floats] = {
        f"{name}_over_{count}": np.log1p(np.mod(np.maximum(size, 0.0), count))
        for name, size in sizes.items()
        for count in _AT_ONCE
    }
    return inputs.with_columns(columns) if columns else inputs
