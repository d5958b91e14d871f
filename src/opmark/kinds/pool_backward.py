"""Gradients of pooling: spread over a window, or placed at the maximum."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._aten.windows import adaptive_window, clipped_window
from opmark.kinds._shared import pooling
from opmark.kinds._shared.pooling import PoolSizes
from opmark.kinds._shared.shapes import code, scaled, size_bytes
from opmark.kinds._shared.windows import window_outputs

_ATEN = {
    "max": "max_pool2d_with_indices_backward",
    "average": "avg_pool2d_backward",
    "adaptive-average": "_adaptive_avg_pool2d_backward",
    "adaptive-max": "adaptive_max_pool2d_backward",
}
_FROM_ATEN = {name: op for op, name in _ATEN.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_ATEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBackward(PoolSizes):
    """Gradient of the pooling with these sizes; `pads` has one entry per axis, the same on both sides."""

    pads: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the forward pass's result, and of its gradient."""
        positions = window_outputs(self.size, self.kernel, self.stride, self.pads * 2, self.dilation, ceil=self.ceil)
        return (self.batch, self.channels, *positions)


class PoolBackwardKind(Kind[PoolBackward]):
    """Gradient of pooling."""

    name = "pool-backward"
    parameters = PoolBackward
    most_bytes = 128 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset(_FROM_ATEN)
    space = {
        **pooling.SPACE,
        "op": Choice(("max", "max", "average", "adaptive-average")),
    }

    def work(self, p: PoolBackward) -> Work:
        result = p.output
        window = 1 if "max" in p.op else math.prod(p.kernel)
        places = size_bytes(result, "int64") if "max" in p.op else 0
        return Work(
            flops=math.prod(result) * window,
            # Only the shape of the input is used.
            read_bytes=size_bytes(result, p.dtype) + places,
            written_bytes=size_bytes((p.batch, p.channels, *p.size), p.dtype),
        )

    def features(self, p: PoolBackward) -> dict[str, float]:
        return {"op": code(p.op, OPERATIONS)} | pooling.pool_features(p, p.output)

    def shape_group(self, p: PoolBackward) -> str:
        return f"{p.op}-{p.batch}-{p.size}-{p.kernel}-{p.stride}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> PoolBackward | None:
        size, kernel, op = values["size"], values["kernel"], values["op"]
        if kernel > size:
            return None
        adaptive = op.startswith("adaptive")
        stride = kernel if adaptive else values["stride"]
        if adaptive and size % kernel:
            return None
        pad = (kernel - 1) // 2 if values["padding"] == "same" and not adaptive else 0
        p = PoolBackward(
            op=op,
            batch=values["batch"],
            channels=values["channels"],
            size=(size, size),
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pads=(pad, pad),
            count_pads=bool(op == "average" and pad),
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: PoolBackward, width: float, extent: float) -> PoolBackward:
        channels = scaled(p.channels, width)
        if p.op.startswith("adaptive"):
            return replace(p, channels=channels)
        return replace(p, channels=channels, size=pooling.resized(p.size, p.kernel, p.dilation, extent))

    def from_aten(self, call: AtenCall) -> PoolBackward | None:
        op, gradient, x = _FROM_ATEN[calls.operator(call)], calls.tensor(call, 0), calls.tensor(call, 1)
        if gradient is None or x is None or len(x.shape) != 4:
            return None
        batch, channels, *rest = x.shape
        size = tuple(rest)
        fields: dict[str, Any] = {"op": op, "batch": batch, "channels": channels, "size": size, "dtype": x.dtype}
        if op.startswith("adaptive"):
            window = adaptive_window(size, gradient.shape[2:])
            return None if window is None else PoolBackward(**fields, **window)
        kernel = calls.each(call.arguments[2], 2)
        stride, pads = calls.each(call.arguments[3] or kernel, 2), calls.each(call.arguments[4], 2)
        fields |= clipped_window(size, kernel, stride, pads) | {"pads": pads}
        if op == "average":
            ceil, count = call.arguments[5:7]
            return PoolBackward(**fields, ceil=bool(ceil), count_pads=bool(count and any(pads)))
        return PoolBackward(**fields, dilation=calls.each(call.arguments[5], 2), ceil=bool(call.arguments[6]))

    def to_aten(self, p: PoolBackward) -> AtenCall | None:
        result, x = TensorSpec(p.output, p.dtype), TensorSpec((p.batch, p.channels, *p.size), p.dtype)
        places, window = TensorSpec(result.shape, "int64"), (p.kernel, p.stride, p.pads)
        arguments: tuple[Any, ...] = {
            "max": (*window, p.dilation, p.ceil, places),
            "average": (*window, p.ceil, p.count_pads, None),
            "adaptive-average": (),
            "adaptive-max": (places,),
        }[p.op]
        return calls.build(_ATEN[p.op], result, x, *arguments, outputs=[x])


KIND = PoolBackwardKind()
