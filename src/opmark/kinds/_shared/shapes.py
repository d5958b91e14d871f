"""Shape arithmetic that several kinds share."""

import math
from collections.abc import Sequence

from opmark.core.kernels.tensor import dtype_bytes

Shape = tuple[int, ...]
EIGHT_BITS = ("int8", "uint8")
# The usual block of vectorised code, in elements.
LANES = 16


def size_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a dense tensor."""
    return math.prod(shape) * dtype_bytes(dtype)


def padding(size: int) -> float:
    """The elements that fill up the last block of `LANES`, as a share of `size`."""
    return math.ceil(size / LANES) * LANES / size - 1


def tensor_of_form(form: str, batch: int, channels: int, extent: int, heads: int = 1) -> Shape:
    """The shape of an `image`, a `sequence`, `attention` scores or a `vector` with these sizes."""
    return {
        "image": (batch, channels, extent, extent),
        "sequence": (batch, extent, channels),
        "attention": (batch, heads, extent, extent),
        "vector": (batch, channels),
    }[form]


def scaled(value: int, factor: float, multiple: int = 1) -> int:
    """`value` times `factor`, rounded to a positive multiple; unchanged at factor 1."""
    if factor == 1:
        return value
    return max(multiple, round(value * factor / multiple) * multiple)


def channel_axis(shape: Sequence[int]) -> int:
    """The channel axis of a tensor of this rank: axis 1 of images, else the last axis."""
    return 1 if len(shape) >= 4 else max(0, len(shape) - 1)


def varied(shape: Shape, width: float, extent: float) -> Shape:
    """`shape` with its channels scaled by `width` and its spatial or sequence sizes by `extent`; ones stay."""
    channel = channel_axis(shape)
    result = []
    for axis, size in enumerate(shape):
        factor = width if axis == channel else extent if axis > 0 else 1
        result.append(size if size == 1 else scaled(size, factor))
    return tuple(result)


def varied_groups(shape: Shape, width: float, extent: float, groups: int) -> Shape:
    """As `varied`, with channels that stay a multiple of `groups`."""
    after = varied(shape, width, extent)
    return (after[0], scaled(shape[1], width, groups), *after[2:]) if groups > 1 else after


def varied_like(shape: Shape, before: Shape, after: Shape) -> Shape:
    """`shape`, which broadcast to `before`, resized so that it broadcasts the same way to `after`."""
    offset = len(before) - len(shape)
    return tuple(
        after[offset + axis] if size == before[offset + axis] else size if size == 1 else 1
        for axis, size in enumerate(shape)
    )


def without_channels(shape: Sequence[int]) -> str:
    """A label that siblings share which differ only in channels."""
    channel = channel_axis(shape)
    return "x".join("c" if axis == channel else str(size) for axis, size in enumerate(shape))


def code(value: str, known: Sequence[str]) -> float:
    """The place of `value` in `known` as a category for a learner; −1 where it is unknown."""
    return float(known.index(value)) if value in known else -1.0
