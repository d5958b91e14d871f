"""Gradients of resampling an image to another size."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall
from opmark.core.kind import Kind, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import calls as _aten
from opmark.kinds._shared.shapes import code, size_bytes, without_channels
from opmark.kinds.resize import KIND as RESIZE
from opmark.kinds.resize import Resize

_ATEN = {
    "nearest": "upsample_nearest2d_backward",
    "linear": "upsample_bilinear2d_backward",
    "cubic": "upsample_bicubic2d_backward",
}
_FROM_ATEN = {name: mode for mode, name in _ATEN.items()}
_FLOPS = {"nearest": 1, "linear": 12, "cubic": 48}
# Append only: a learner's category codes are the places in this list.
MODES = tuple(_ATEN)
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeBackward:
    """Of the resampling from `shape` to `output`, batch and channels first."""

    shape: tuple[int, ...]
    output: tuple[int, ...]
    mode: str = "nearest"
    aligned: bool = False
    dtype: str = "float32"


class ResizeBackwardKind(Kind[ResizeBackward]):
    """Gradient of resampling."""

    name = "resize-backward"
    parameters = ResizeBackward
    categories = ("mode",)
    languages = ("aten",)
    aten_ops = frozenset(_FROM_ATEN)
    space = RESIZE.space

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
        drawn = RESIZE.draw(values, setting)
        if drawn is None:
            return None
        aligned = drawn.mode != "nearest" and values["coordinates"] == "align_corners"
        p = ResizeBackward(shape=drawn.shape, output=drawn.output, mode=drawn.mode, aligned=aligned, dtype=drawn.dtype)
        return p if self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: ResizeBackward, width: float, extent: float) -> ResizeBackward:
        after = RESIZE.vary(Resize(shape=p.shape, output=p.output, mode=p.mode), width, extent)
        return replace(p, shape=after.shape, output=after.output)

    def from_aten(self, call: AtenCall) -> ResizeBackward | None:
        gradient, mode = _aten.tensor(call, 0), _FROM_ATEN[_aten.operator(call)]
        shape = _aten.argument(call, 2, "input_size")
        if gradient is None or not shape or len(shape) != 4:
            return None
        aligned = mode != "nearest" and bool(_aten.argument(call, 3, "align_corners", False))
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
        return _aten.build(_ATEN[p.mode], gradient, p.output[2:], p.shape, *more, outputs=[x])


KIND = ResizeBackwardKind()
