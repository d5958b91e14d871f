"""Pooling as forward and backward kernels share it: sizes, sampling space, features."""

import math
from dataclasses import dataclass

from opmark.core.kernels.kind import Axis, Choice, Range
from opmark.kinds._shared.shapes import Shape, scaled

# Axes of a sampling space, in the order that `Pool` draws them.
SPACE: dict[str, Axis] = {
    "batch": Choice((1, 1, 1, 2, 4, 8)),
    "channels": Range(8, 2048, 8),
    "size": Range(4, 224),
    "kernel": Choice((2, 3, 3, 5, 7)),
    "stride": Choice((1, 2, 2)),
    "padding": Choice(("same", "none")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """`size`, `kernel`, `stride` and `dilation` have one entry per spatial axis.

    `ceil` keeps a window that hangs over the end; `count_pads` averages over padding too.
    """

    op: str
    batch: int
    channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False
    count_pads: bool = False
    dtype: str = "float32"


def pool_features(p: PoolSizes, output: Shape) -> dict[str, float]:
    """The features that forward and backward kernels share."""
    return {
        "batch": p.batch,
        "channels": p.channels,
        "height": p.size[0] if len(p.size) > 1 else 1,
        "width": p.size[-1],
        "output_elements": math.prod(output),
        "window": math.prod(p.kernel),
        "stride": max(p.stride),
        "padded": float(any(p.pads)),
        "count_pads": float(p.count_pads),
    }


def resized(size: Shape, kernel: Shape, dilation: Shape, extent: float) -> Shape:
    """The image scaled by `extent`, at least as large as the window."""
    scaled_size = (1 if n == 1 else scaled(n, extent) for n in size)
    return tuple(max(n, d * (k - 1) + 1) for n, k, d in zip(scaled_size, kernel, dilation, strict=True))
