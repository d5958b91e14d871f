"""Gradients of resampling an image to another size."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared import resampling
from opmark.kinds._shared.shapes import code, size_bytes, without_channels

_ATEN = {
    "nearest": "upsample_nearest2d_backward",
    "linear": "upsample_bilinear2d_backward",
    "cubic": "upsample_bicubic2d_backward",
}
_FROM_ATEN = {name: mode for mode, name in _ATEN.items()}
_FLOPS = {"nearest": 1, "linear": 12, "cubic": 48}
# Append only: a learner's category codes are the places in this list.
MODES = tuple(_ATEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeBackward:
    """Gradient of the resampling from `shape` to `output`, batch and channels first."""

    shape: tuple[int, ...]
    output: tuple[int, ...]
    mode: str = "nearest"
    aligned: bool = False
    dtype: str = "float32"


class ResizeBackwardKind(Kind[ResizeBackward]):
    """Gradient of resampling."""

    name = "resize-backward"
    parameters = ResizeBackward
    most_bytes = 128 * 2**20
    categories = ("mode",)
    languages = ("aten",)
    aten_ops = frozenset(_FROM_ATEN)
    space = resampling.SPACE

    def work(self, p: ResizeBackward) -> Work:
        return Work(
            flops=math.prod(p.output) * _FLOPS[p.mode],
            read_bytes=size_bytes(p.output, p.dtype),
            written_bytes=size_bytes(p.shape, p.dtype),
        )

    def features(self, p: ResizeBackward) -> dict[str, float]:
        return {
            "planes": math.prod(p.shape[:2]),
            "height": p.shape[2],
            "width": p.shape[3],
            "output_height": p.output[2],
            "output_width": p.output[3],
            "mode": code(p.mode, MODES),
            "aligned": float(p.aligned),
        }

    def shape_group(self, p: ResizeBackward) -> str:
        return f"{p.mode}-{without_channels(p.shape)}-{without_channels(p.output)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ResizeBackward | None:
        mode = values["mode"]
        aligned = mode != "nearest" and values["coordinates"] == "align_corners"
        shapes = resampling.drawn_shapes(values)
        return self.within_limits(ResizeBackward(**shapes, mode=mode, aligned=aligned, dtype=setting.dtype))

    def vary(self, p: ResizeBackward, width: float, extent: float) -> ResizeBackward:
        return replace(p, **resampling.resized(p.shape, p.output, width, extent))

    def from_aten(self, call: AtenCall) -> ResizeBackward | None:
        gradient, mode = calls.tensor(call, 0), _FROM_ATEN[calls.operator(call)]
        shape = calls.argument(call, 2, "input_size")
        if gradient is None or not shape or len(shape) != 4:
            return None
        aligned = mode != "nearest" and bool(calls.argument(call, 3, "align_corners", False))
        return ResizeBackward(
            shape=tuple(int(size) for size in shape),
            output=gradient.shape,
            mode=mode,
            aligned=aligned,
            dtype=gradient.dtype,
        )

    def to_aten(self, p: ResizeBackward) -> AtenCall | None:
        more = () if p.mode == "nearest" else (p.aligned,)
        gradient, x = TensorSpec(p.output, p.dtype), TensorSpec(p.shape, p.dtype)
        return calls.build(_ATEN[p.mode], gradient, p.output[2:], p.shape, *more, outputs=[x])


KIND = ResizeBackwardKind()
