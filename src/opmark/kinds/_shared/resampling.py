"""Resampling of images as forward and backward kernels share it: sampling space, relatives."""

from collections.abc import Mapping
from typing import Any

from opmark.core.kernels.kind import Axis, Choice, Range
from opmark.kinds._shared.shapes import Shape, varied

SPACE: dict[str, Axis] = {
    "batch": Choice((1, 1, 1, 2, 4)),
    "channels": Range(3, 1024),
    "size": Range(4, 128),
    "factor": Choice((0.5, 2, 2, 2, 4)),
    "mode": Choice(("nearest", "nearest", "linear", "linear", "cubic")),
    "coordinates": Choice(("asymmetric", "half_pixel", "align_corners")),
}


def drawn_shapes(values: Mapping[str, Any]) -> dict[str, Any]:
    """The image's shape and the result's at a point of `SPACE`."""
    lead, size = (values["batch"], values["channels"]), values["size"]
    return {"shape": (*lead, size, size), "output": (*lead, *(int(size * values["factor"]),) * 2)}


def resized(shape: Shape, output: Shape, width: float, extent: float) -> dict[str, Any]:
    """Both shapes with channels scaled by `width` and the image by `extent`, at nearly the same ratio."""
    after = varied(shape, width, extent)
    grown = (max(1, m * larger // n) for n, m, larger in zip(shape[2:], output[2:], after[2:], strict=True))
    return {"shape": after, "output": (*after[:2], *grown)}
