"""The taps of a sliding window that lie inside the image, position by position."""

from typing import Protocol

from opmark.kinds._shared.shapes import Shape


class Sliding(Protocol):
    """A window that slides over an image; `pads` holds all beginnings, then all ends."""

    @property
    def size(self) -> Shape: ...
    @property
    def kernel(self) -> Shape: ...
    @property
    def stride(self) -> Shape: ...
    @property
    def pads(self) -> Shape: ...


def taps_inside(p: Sliding, output: Shape, dilation: Shape) -> list[list[int]]:
    """Count the taps of the window that lie inside, along each axis, for each of its positions."""
    return [
        [_inside(p, axis, position * p.stride[axis] - p.pads[axis], dilation[axis]) for position in range(positions)]
        for axis, positions in enumerate(output)
    ]


def _inside(p: Sliding, axis: int, start: int, dilation: int) -> int:
    first = max(0, -(start // dilation))
    last = min(p.kernel[axis] - 1, (p.size[axis] - 1 - start) // dilation)
    return max(0, last - first + 1)
