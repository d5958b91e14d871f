"""Softmax and its logarithm along one axis."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import FLOATING, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._libraries import vectors
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present
from opmark.kinds._onnx.quantised import interleaved, quantisation
from opmark.kinds._shared import softmax
from opmark.kinds._shared.shapes import EIGHT_BITS, size_bytes, varied
from opmark.kinds._shared.softmax import SoftmaxSizes

_PER_ELEMENT_FLOPS = 12  # maximum, subtraction, exponential (8), sum, division
_QUANTISED = f"{MICROSOFT}:QLinearSoftmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(SoftmaxSizes):
    """Softmax of a tensor; of eight-bit numbers through a table of exponentials."""


class SoftmaxKind(Kind[Softmax]):
    """Softmax."""

    name = "softmax"
    parameters = Softmax
    most_bytes = 128 * 2**20
    dtypes = FLOATING | {"int8"}
    onnx_ops = frozenset({"Softmax", "LogSoftmax", _QUANTISED})
    aten_ops = frozenset({"_softmax", "_log_softmax", "_safe_softmax"})
    space = softmax.SPACE

    def work(self, p: Softmax) -> Work:
        size = size_bytes(p.shape, p.dtype)
        return Work(flops=_PER_ELEMENT_FLOPS * math.prod(p.shape), read_bytes=size, written_bytes=size)

    def features(self, p: Softmax) -> dict[str, float]:
        return softmax.features(p)

    def details(self, p: Softmax) -> dict[str, float]:
        return {"contiguous": float(math.prod(p.shape[p.axis + 1 :]) == 1)}

    def steps(self, p: Softmax) -> dict[str, float]:
        return vectors.steps_along(p.shape, p.axis, p.dtype)

    def shape_group(self, p: Softmax) -> str:
        return softmax.shape_group(p)

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Softmax | None:
        shape, axis = softmax.drawn_shape(values)
        quantised = setting.dtype in EIGHT_BITS
        if quantised and setting.language != "onnx":
            return None
        dtype = "uint8" if quantised else setting.dtype
        return self.within_limits(Softmax(shape=shape, axis=axis, log=values["log"] and not quantised, dtype=dtype))

    def vary(self, p: Softmax, width: float, extent: float) -> Softmax:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_onnx(self, node: OnnxNode) -> Softmax | None:
        x = present(node, 0)
        if x is None or not x.spec.shape:
            return None
        shape = x.spec.shape
        # The quantised operator carries its operator set as an attribute.
        old = int(node.attributes.get("opset", node.opset)) < 13
        axis = int(node.attributes.get("axis", 1 if old else -1)) % len(shape)
        if old and axis != len(shape) - 1:
            # Up to operator set 12, softmax ran over everything from `axis` on.
            shape, axis = (math.prod(shape[:axis]), math.prod(shape[axis:])), 1
        return Softmax(shape=shape, axis=axis, log=node.op_type == "LogSoftmax", dtype=x.spec.dtype)

    def to_onnx(self, p: Softmax) -> OnnxNode | None:
        if p.dtype in EIGHT_BITS:
            inputs = [*interleaved((data(p.shape, p.dtype),), p.dtype), *quantisation(p.dtype)]
            return build(_QUANTISED, inputs, [TensorSpec(p.shape, p.dtype)], {"axis": p.axis, "opset": 13})
        name = "LogSoftmax" if p.log else "Softmax"
        return build(name, [data(p.shape, p.dtype)], [TensorSpec(p.shape, p.dtype)], {"axis": p.axis})

    def from_aten(self, call: AtenCall) -> Softmax | None:
        x = calls.tensor(call, 0)
        if x is None or not x.shape:
            return None
        axis = int(calls.argument(call, 1, "dim", -1)) % len(x.shape)
        return Softmax(shape=x.shape, axis=axis, log=calls.operator(call) == "_log_softmax", dtype=x.dtype)

    def to_aten(self, p: Softmax) -> AtenCall | None:
        x = TensorSpec(p.shape, p.dtype)
        return calls.build("_log_softmax" if p.log else "_softmax", x, p.axis, False, outputs=[x])


KIND = SoftmaxKind()
