"""The geometry of sliding windows, as convolutions and pooling have it."""

from opmark.kinds._shared.shapes import Shape


def window_output(size: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int = 1) -> int:
    """Positions of a window along one axis; `pads` are those at the beginning and at the end."""
    return (size + sum(pads) - dilation * (kernel - 1) - 1) // stride + 1


def window_outputs(
    size: Shape, kernel: Shape, stride: Shape, pads: Shape, dilation: Shape, *, ceil: bool = False
) -> Shape:
    """Positions of a window along every axis; `pads` holds all beginnings, then all ends.

    With `ceil`, a window may hang over the end, but must start inside the input or its leading padding.
    """
    found = []
    for n, k, s, before, after, d in zip(
        size, kernel, stride, pads[: len(size)], pads[len(size) :], dilation, strict=True
    ):
        positions = window_output(n, k, s, (before, after + (s - 1 if ceil else 0)), d)
        found.append(positions - (ceil and (positions - 1) * s >= n + before))
    return tuple(found)


def transposed_outputs(
    size: Shape, kernel: Shape, stride: Shape, pads: Shape, dilation: Shape, *, output_pads: Shape | None = None
) -> Shape:
    """Spatial shape of a transposed convolution's result; `pads` are cut from it, `output_pads` widen its ends."""
    axes = len(size)
    cut = [before + after for before, after in zip(pads[:axes], pads[axes:], strict=True)]
    widened = output_pads or (0,) * axes
    return tuple(
        (n - 1) * s + d * (k - 1) + 1 - c + w
        for n, k, s, d, c, w in zip(size, kernel, stride, dilation, cut, widened, strict=True)
    )


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


def waste(size: int, tile: int) -> float:
    """The share of work added where `size` is padded to whole tiles."""
    return -(-size // tile) * tile / max(1, size) - 1
