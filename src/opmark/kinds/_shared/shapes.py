"""Shape arithmetic that several families share."""

import math
from collections.abc import Sequence

from opmark.core.tensor import dtype_bytes

Shape = tuple[int, ...]


def size_bytes(shape: Sequence[int], dtype: str) -> int:
    """Bytes of a dense tensor."""
    return math.prod(shape) * dtype_bytes(dtype)


def scaled(value: int, factor: float, multiple: int = 1) -> int:
    """`value` times `factor`, rounded to a positive multiple; unchanged at factor 1."""
    if factor == 1:
        return value
    return max(multiple, round(value * factor / multiple) * multiple)


def channel_axis(shape: Sequence[int]) -> int:
    """Where a tensor of this rank keeps its channels: axis 1 of images, the last axis of everything else."""
    return 1 if len(shape) >= 4 else max(0, len(shape) - 1)


def varied(shape: Shape, width: float, extent: float) -> Shape:
    """`shape` with its channels scaled by `width` and its spatial or sequence sizes by `extent`; ones stay."""
    channel = channel_axis(shape)
    result = []
    for axis, size in enumerate(shape):
        factor = width if axis == channel else extent if axis > 0 else 1
        result.append(size if size == 1 else scaled(size, factor))
    return tuple(result)


def varied_like(shape: Shape, before: Shape, after: Shape) -> Shape:
    """`shape`, which broadcast to `before`, resized so that it broadcasts the same way to `after`."""
    offset = len(before) - len(shape)
    return tuple(
        after[offset + axis] if size == before[offset + axis] else size if size == 1 else 1
        for axis, size in enumerate(shape)
    )


def without_channels(shape: Sequence[int]) -> str:
    """What siblings that differ only in channels share, as text."""
    channel = channel_axis(shape)
    return "x".join("c" if axis == channel else str(size) for axis, size in enumerate(shape))


def window_output(size: int, kernel: int, stride: int, pad: int, dilation: int = 1, *, ceil: bool = False) -> int:
    """Positions of a sliding window over one axis; `pad` is the sum of both ends."""
    span = size + pad - dilation * (kernel - 1) - 1
    if not ceil:
        return span // stride + 1
    return -(-span // stride) + 1


def resolved_pads(
    auto_pad: str, pads: Shape | None, *, size: Shape, kernel: Shape, stride: Shape, dilation: Shape
) -> Shape:
    """Explicit pads (all begins, then all ends) for ONNX's `auto_pad`."""
    if auto_pad not in {"SAME_UPPER", "SAME_LOWER"}:
        return pads if pads and auto_pad != "VALID" else (0,) * (2 * len(size))
    begins, ends = [], []
    for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        small, large = total // 2, total - total // 2
        begins.append(small if auto_pad == "SAME_UPPER" else large)
        ends.append(large if auto_pad == "SAME_UPPER" else small)
    return (*begins, *ends)


def waste(size: int, tile: int) -> float:
    """The share of work that is done in vain where `size` is padded to whole tiles."""
    return -(-size // tile) * tile / max(1, size) - 1


def valid_taps(size: Shape, output: Shape, *, kernel: Shape, stride: Shape, pads: Shape, dilation: Shape) -> float:
    """The share of a sliding window's taps that meet the image and not its padding."""
    share = 1.0
    for n, m, k, s, before, d in zip(size, output, kernel, stride, pads, dilation, strict=False):
        inside = 0
        for tap in range(k):
            # output positions whose tap lies in [0, n)
            first = max(0, -(-(before - tap * d) // s))
            last = min(m - 1, (n - 1 + before - tap * d) // s)
            inside += max(0, last - first + 1)
        share *= inside / (m * k)
    return share


def code(value: str, known: Sequence[str]) -> float:
    """The place of `value` in `known` as a category for a learner; −1 for a stranger."""
    return float(known.index(value)) if value in known else -1.0
