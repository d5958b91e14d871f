"""Gradients of activations, computed from the gradient and the saved tensor element by element."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import code, size_bytes, tensor_of_form, varied, without_channels

# By operation: the ATen name, and the arguments after the gradient and the saved tensor.
_CALLS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "relu": ("threshold_backward", (0,)),
    "clip": ("hardtanh_backward", (0.0, 6.0)),
    "sigmoid": ("sigmoid_backward", ()),
    "tanh": ("tanh_backward", ()),
    "gelu": ("gelu_backward", ()),
    "gelu-tanh": ("gelu_backward", ()),
    "silu": ("silu_backward", ()),
    "hard-swish": ("hardswish_backward", ()),
    "hard-sigmoid": ("hardsigmoid_backward", ()),
    "leaky-relu": ("leaky_relu_backward", (0.01, False)),
    "elu": ("elu_backward", (1.0, 1.0, 1.0, False)),
    "softplus": ("softplus_backward", (1.0, 20.0)),
    "mish": ("mish_backward", ()),
}
_FLOPS = {
    "relu": 1, "clip": 2, "sigmoid": 3, "tanh": 3, "gelu": 26, "gelu-tanh": 26, "silu": 12, "hard-swish": 4,
    "hard-sigmoid": 3, "leaky-relu": 2, "elu": 10, "softplus": 11, "mish": 30,
}  # fmt: skip
_FROM_ATEN = {name: op for op, (name, _) in reversed(_CALLS.items()) if op != "gelu-tanh"}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationBackward:
    """Both tensors have `shape`; a `strided` gradient is a slice of a wider tensor."""

    op: str
    shape: tuple[int, ...]
    strided: bool = False
    dtype: str = "float32"


class ActivationBackwardKind(Kind[ActivationBackward]):
    """Gradient of an activation."""

    name = "activation-backward"
    parameters = ActivationBackward
    most_bytes = 128 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset(_FROM_ATEN)
    space = {
        "op": Choice(
            ("relu", "relu", "relu", "clip", "sigmoid", "tanh", "gelu", "gelu", "gelu-tanh", "silu", "silu",
             "hard-swish", "hard-sigmoid", "leaky-relu", "elu", "softplus", "mish")
        ),
        "form": Choice(("image", "image", "sequence", "vector")),
        "batch": Choice((1, 2, 2, 4, 8)),
        "channels": Range(8, 4096, 8),
        "extent": Range(4, 512),
        "strided": Choice((False, False, False, False, True)),
    }  # fmt: skip

    def work(self, p: ActivationBackward) -> Work:
        size = size_bytes(p.shape, p.dtype)
        return Work(flops=_FLOPS[p.op] * math.prod(p.shape), read_bytes=2 * size, written_bytes=size)

    def features(self, p: ActivationBackward) -> dict[str, float]:
        return {
            "op": code(p.op, OPERATIONS),
            "elements": math.prod(p.shape),
            "inner": p.shape[-1] if p.shape else 1,
            "rank": len(p.shape),
            "strided": float(p.strided),
        }

    def shape_group(self, p: ActivationBackward) -> str:
        return f"{p.op}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ActivationBackward | None:
        batch, channels, extent = values["batch"], values["channels"], values["extent"]
        shape = tensor_of_form(values["form"], batch, channels, extent)
        strided = values["strided"] and values["form"] == "image" and batch > 1
        p = ActivationBackward(op=values["op"], shape=shape, strided=strided, dtype=setting.dtype)
        return self.within_limits(p)

    def vary(self, p: ActivationBackward, width: float, extent: float) -> ActivationBackward:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_aten(self, call: AtenCall) -> ActivationBackward | None:
        name = calls.operator(call)
        # The saved tensor of `elu` stands last.
        x = calls.tensor(call, 5 if name == "elu_backward" else 1)
        gradient = calls.tensor(call, 0)
        if x is None or gradient is None or gradient.shape != x.shape or gradient.dtype != x.dtype:
            return None
        op = _FROM_ATEN[name]
        if op == "gelu" and call.keywords.get("approximate", "none") == "tanh":
            op = "gelu-tanh"
        strides = calls.stride(call, 0)
        strided = strides is not None and strides == _sliced(x.shape, strides[0])
        return ActivationBackward(op=op, shape=x.shape, strided=strided, dtype=x.dtype)

    def to_aten(self, p: ActivationBackward) -> AtenCall | None:
        x, (name, numbers) = TensorSpec(p.shape, p.dtype), _CALLS[p.op]
        strides = (_sliced(p.shape, 2 * math.prod(p.shape[1:])),) if p.strided else ()
        if p.op == "elu":
            return calls.build(name, x, *numbers, x, outputs=[x], strides=strides)
        more: dict[str, Any] = {"approximate": "tanh"} if p.op == "gelu-tanh" else {}
        return calls.build(name, x, x, *numbers, outputs=[x], strides=strides, **more)


def _sliced(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Strides of a tensor that is contiguous in all axes but the first."""
    return (step, *calls.dense(shape)[1:])


KIND = ActivationBackwardKind()
