"""Shapes and element types, independent of any framework."""

import math
from dataclasses import dataclass

from opmark.core.errors import ContentError

DTYPE_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
}


def dtype_bytes(dtype: str) -> int:
    """Bytes of one element. Raises `ContentError` for a type OpMark does not know."""
    try:
        return DTYPE_BYTES[dtype]
    except KeyError:
        raise ContentError(f"unknown element type {dtype!r}", hint=f"known: {', '.join(DTYPE_BYTES)}") from None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A concrete shape and an element type."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Number of bytes, densely packed."""
        return self.elements * dtype_bytes(self.dtype)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after numpy-style broadcasting. Raises `ContentError` if there is none."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ContentError(f"shapes {shapes} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)
