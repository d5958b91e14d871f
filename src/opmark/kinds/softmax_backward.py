"""Gradients of softmax and its logarithm along one axis, from the result of the forward pass."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall
from opmark.core.kind import Kind, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import calls as _aten
from opmark.kinds._shared.shapes import size_bytes, varied, without_channels
from opmark.kinds.softmax import KIND as SOFTMAX

_FLOPS = 4  # product, sum, difference, product
_LOG_FLOPS = 11  # the exponential (8), sum, product, difference
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxBackward:
    """Over `axis` (counted from the front); `dtype` is that of the gradient and of the result."""

    shape: tuple[int, ...]
    axis: int
    log: bool = False
    dtype: str = "float32"


class SoftmaxBackwardKind(Kind[SoftmaxBackward]):
    """Gradient of softmax."""

    name = "softmax-backward"
    parameters = SoftmaxBackward
    languages = ("aten",)
    aten_ops = frozenset({"_softmax_backward_data", "_log_softmax_backward_data"})
    space = SOFTMAX.space

    def work(self, p: SoftmaxBackward) -> Work:
        size = size_bytes(p.shape, p.dtype)
        flops = (_LOG_FLOPS if p.log else _FLOPS) * math.prod(p.shape)
        return Work(flops=flops, read_bytes=2 * size, written_bytes=size)

    def features(self, p: SoftmaxBackward) -> dict[str, float]:
        return {
            "outer": math.prod(p.shape[: p.axis]),
            "along": p.shape[p.axis],
            "inner": math.prod(p.shape[p.axis + 1 :]),
            "log": float(p.log),
        }

    def shape_group(self, p: SoftmaxBackward) -> str:
        return f"{p.axis}-{without_channels(p.shape)}" if p.axis != len(p.shape) - 1 else f"last-{p.shape[-1]}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> SoftmaxBackward | None:
        drawn = SOFTMAX.draw(values, setting)
        if drawn is None:
            return None
        p = SoftmaxBackward(shape=drawn.shape, axis=drawn.axis, log=drawn.log, dtype=drawn.dtype)
        return p if self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: SoftmaxBackward, width: float, extent: float) -> SoftmaxBackward:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_aten(self, call: AtenCall) -> SoftmaxBackward | None:
        x = _aten.tensor(call, 1)
        if x is None or not x.shape or call.arguments[3] != x.dtype:
            return None
        axis = int(call.arguments[2]) % len(x.shape)
        return SoftmaxBackward(shape=x.shape, axis=axis, log="log" in call.op, dtype=x.dtype)

    def to_aten(self, p: SoftmaxBackward) -> AtenCall | None:
        x = TensorSpec(p.shape, p.dtype)
        name = "_log_softmax_backward_data" if p.log else "_softmax_backward_data"
        return _aten.build(name, x, x, p.axis, p.dtype, outputs=[x])


KIND = SoftmaxBackwardKind()
