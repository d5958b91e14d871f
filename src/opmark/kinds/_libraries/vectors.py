"""The vectors of a row that a loop takes at once, and the numbers that are left for a loop of single ones."""

import math

from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.kinds._shared.shapes import Shape

# The width of AVX-512; and torch's loops that are unrolled four times.
_VECTOR_BYTES = 64
_VECTORS = {"vector": 1, "four_vectors": 4}


def steps_along(shape: Shape, axis: int, dtype: str) -> dict[str, float]:
    """The `steps_of_row` of what stands behind `axis`, or of the axis itself where nothing does."""
    across = math.prod(shape[axis + 1 :])
    return steps_of_row(across if across > 1 else shape[axis], dtype)


def steps_of_row(row: int, dtype: str) -> dict[str, float]:
    """The logarithms of whole vectors, and of four of them, in a `row` of elements, and of what is left; its share.

    torch's softmax computes a row of 15 numbers one by one, in eight times the time of 16 (decision 0058).
    """
    found: dict[str, float] = {}
    for name, count in _VECTORS.items():
        whole, rest = divmod(row, count * _VECTOR_BYTES // DTYPE_BYTES[dtype])
        found |= {name: math.log1p(whole), f"{name}_rest": math.log1p(rest), f"{name}_rest_share": rest / max(row, 1)}
    return found
