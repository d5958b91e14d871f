"""Gradients of softmax and its logarithm along one axis, from the result of the forward pass."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._libraries import vectors
from opmark.kinds._shared import softmax
from opmark.kinds._shared.shapes import size_bytes, varied
from opmark.kinds._shared.softmax import SoftmaxSizes

_FLOPS = 4  # product, sum, difference, product
_LOG_FLOPS = 11  # the exponential (8), sum, product, difference


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxBackward(SoftmaxSizes):
    """Gradient of softmax; `dtype` is the type of the gradient and of the result."""


class SoftmaxBackwardKind(Kind[SoftmaxBackward]):
    """Gradient of softmax."""

    name = "softmax-backward"
    parameters = SoftmaxBackward
    most_bytes = 128 * 2**20
    languages = ("aten",)
    aten_ops = frozenset({"_softmax_backward_data", "_log_softmax_backward_data"})
    space = softmax.SPACE

    def work(self, p: SoftmaxBackward) -> Work:
        size = size_bytes(p.shape, p.dtype)
        flops = (_LOG_FLOPS if p.log else _FLOPS) * math.prod(p.shape)
        return Work(flops=flops, read_bytes=2 * size, written_bytes=size)

    def features(self, p: SoftmaxBackward) -> dict[str, float]:
        return softmax.features(p)

    def steps(self, p: SoftmaxBackward) -> dict[str, float]:
        return vectors.steps_along(p.shape, p.axis, p.dtype)

    def shape_group(self, p: SoftmaxBackward) -> str:
        return softmax.shape_group(p)

    def draw(self, values: Mapping[str, Any], setting: Setting) -> SoftmaxBackward | None:
        shape, axis = softmax.drawn_shape(values)
        return self.within_limits(SoftmaxBackward(shape=shape, axis=axis, log=values["log"], dtype=setting.dtype))

    def vary(self, p: SoftmaxBackward, width: float, extent: float) -> SoftmaxBackward:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_aten(self, call: AtenCall) -> SoftmaxBackward | None:
        x = calls.tensor(call, 1)
        if x is None or not x.shape or call.arguments[3] != x.dtype:
            return None
        axis = int(call.arguments[2]) % len(x.shape)
        return SoftmaxBackward(shape=x.shape, axis=axis, log="log" in call.op, dtype=x.dtype)

    def to_aten(self, p: SoftmaxBackward) -> AtenCall | None:
        x = TensorSpec(p.shape, p.dtype)
        name = "_log_softmax_backward_data" if p.log else "_softmax_backward_data"
        return calls.build(name, x, x, p.axis, p.dtype, outputs=[x])


KIND = SoftmaxBackwardKind()
