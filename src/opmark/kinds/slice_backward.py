"""Gradients of slices and selections: the gradient in its place, zeros elsewhere."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import scaled, size_bytes, varied, without_channels


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceBackward:
    """`shape` is the whole tensor's; along `axis` the gradient fills `start` to `end` in steps.

    `single` drops the axis, as selecting one place does.
    """

    shape: tuple[int, ...]
    axis: int
    start: int
    end: int
    step: int = 1
    single: bool = False
    dtype: str = "float32"

    @property
    def gradient(self) -> tuple[int, ...]:
        """Shape of the gradient."""
        count = max(0, -(-(self.end - self.start) // self.step))
        kept = () if self.single else (count,)
        return (*self.shape[: self.axis], *kept, *self.shape[self.axis + 1 :])


class SliceBackwardKind(Kind[SliceBackward]):
    """Gradient of a slice."""

    name = "slice-backward"
    parameters = SliceBackward
    most_bytes = 128 * 2**20
    languages = ("aten",)
    aten_ops = frozenset({"slice_backward", "select_backward"})
    space = {
        "form": Choice(("sequence", "sequence", "heads", "heads", "image")),
        "batch": Choice((1, 2, 2, 4, 8)),
        "heads": Choice((2, 4, 8, 12, 16)),
        "length": Range(2, 1024),
        "channels": Range(8, 2048, 8),
        "part": Choice(("half", "half", "second-half", "one", "one", "odd")),
    }

    def work(self, p: SliceBackward) -> Work:
        # The kernel writes zeros everywhere, then the gradient into its part.
        kept, whole = size_bytes(p.gradient, p.dtype), size_bytes(p.shape, p.dtype)
        return Work(flops=0, read_bytes=kept, written_bytes=whole + kept)

    def features(self, p: SliceBackward) -> dict[str, float]:
        return {
            "elements": math.prod(p.shape),
            "kept_elements": math.prod(p.gradient),
            "outer": math.prod(p.shape[: p.axis]),
            "along": p.shape[p.axis],
            "inner": math.prod(p.shape[p.axis + 1 :]),
            "step": p.step,
            "single": float(p.single),
        }

    def shape_group(self, p: SliceBackward) -> str:
        return f"{p.axis}-{without_channels(p.shape)}-{p.start}-{p.end}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> SliceBackward | None:
        batch, length, channels, form = values["batch"], values["length"], values["channels"], values["form"]
        shape, axis = {
            "sequence": ((batch, length, channels), 1),
            "heads": ((batch, values["heads"], length, min(channels, 128)), 3),
            "image": ((batch, channels, min(length, 112), min(length, 112)), 1),
        }[form]
        size = shape[axis]
        start, end, step = {
            "half": (0, size // 2, 1),
            "second-half": (size // 2, size, 1),
            "one": (0, 1, 1),
            "odd": (1, size, 2),
        }[values["part"]]
        single = values["part"] == "one" and form != "heads"
        p = SliceBackward(shape=shape, axis=axis, start=start, end=end, step=step, single=single, dtype=setting.dtype)
        return self.within_limits(p) if start < end else None

    def vary(self, p: SliceBackward, width: float, extent: float) -> SliceBackward:
        shape = varied(p.shape, width, extent)
        before, after = p.shape[p.axis], shape[p.axis]
        if p.single:
            start = min(p.start, after - 1)
            return replace(p, shape=shape, start=start, end=start + 1)
        if before == after:
            return replace(p, shape=shape)
        start = min(after - 1, scaled(p.start, after / before) if p.start else 0)
        end = after if p.end == before else max(start + 1, min(after, scaled(p.end, after / before)))
        return replace(p, shape=shape, start=start, end=end)

    def from_aten(self, call: AtenCall) -> SliceBackward | None:
        gradient, shape = calls.tensor(call, 0), tuple(int(size) for size in call.arguments[1])
        if gradient is None or not shape:
            return None
        axis = int(call.arguments[2]) % len(shape)
        size, place = shape[axis], int(call.arguments[3])
        place = max(0, place + size) if place < 0 else place
        if calls.operator(call) == "select_backward":
            return SliceBackward(shape=shape, axis=axis, start=place, end=place + 1, single=True, dtype=gradient.dtype)
        end, step = int(call.arguments[4]), int(call.arguments[5])
        end = end + size if end < 0 else min(end, size)
        return SliceBackward(shape=shape, axis=axis, start=min(place, size), end=end, step=step, dtype=gradient.dtype)

    def to_aten(self, p: SliceBackward) -> AtenCall | None:
        gradient, whole = TensorSpec(p.gradient, p.dtype), TensorSpec(p.shape, p.dtype)
        if p.single:
            return calls.build("select_backward", gradient, p.shape, p.axis, p.start, outputs=[whole])
        return calls.build("slice_backward", gradient, p.shape, p.axis, p.start, p.end, p.step, outputs=[whole])


KIND = SliceBackwardKind()
