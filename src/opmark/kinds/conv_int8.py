"""Convolution of eight-bit numbers: into eight bits with channels last, or into 32-bit sums."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, read_window, weight, window_attributes
from opmark.kinds._onnx.quantised import (
    is_per_channel,
    nchw,
    nhwc,
    quantisation,
    weight_quantisation,
    zero_point,
)
from opmark.kinds._shared import convolution
from opmark.kinds._shared.convolution import Convolution
from opmark.kinds._shared.shapes import EIGHT_BITS, code

_CHANNELS_LAST = f"{MICROSOFT}:QLinearConv"
OPERATIONS = ("qlinear", "integer")
# Per element of the result: scale, round, add and clamp.
_REQUANTISE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvInt8(Convolution):
    """`qlinear` gives eight bits, `integer` 32-bit sums; sizes are given channels first in either layout.

    `channels_last` is the layout of the tensors in memory; `per_channel` is a scale per output channel; `dtype` and
    `weight_dtype` are the element types of the image and of the weights.
    """

    op: str
    bias: bool = False
    channels_last: bool = False
    per_channel: bool = False
    weight_dtype: str = "int8"
    dtype: str = "uint8"

    @property
    def input(self) -> TensorSpec:
        """The image as stored."""
        return TensorSpec(nhwc(self.input_shape) if self.channels_last else self.input_shape, self.dtype)

    @property
    def output(self) -> TensorSpec:
        """The result as stored."""
        shape = nhwc(self.output_shape) if self.channels_last else self.output_shape
        return TensorSpec(shape, "int32" if self.op == "integer" else self.dtype)


class ConvInt8Kind(Kind[ConvInt8]):
    """Eight-bit convolution."""

    name = "conv-int8"
    parameters = ConvInt8
    matrix = True
    languages = ("onnx",)
    dtypes = frozenset({"int8"})
    categories = ("op", "types")
    onnx_ops = frozenset({"QLinearConv", _CHANNELS_LAST, "ConvInteger"})
    space = {
        **convolution.SPACE,
        "op": Choice(("qlinear", "qlinear", "qlinear", "integer")),
        "channels_last": Choice((True, True, True, False)),
        "per_channel": Choice((False, False, False, True)),
    }

    def work(self, p: ConvInt8) -> Work:
        depth = math.prod(p.weight[1:])
        weight_bytes = p.channels_out * depth + 4 * p.channels_out * (p.bias + p.per_channel)
        return Work(
            flops=p.output.elements * (2 * depth + p.bias + (_REQUANTISE if p.op == "qlinear" else 0)),
            read_bytes=p.input.size_bytes + weight_bytes,
            written_bytes=p.output.size_bytes,
            weight_bytes=weight_bytes,
        )

    def features(self, p: ConvInt8) -> dict[str, float]:
        return convolution.convolution_features(p) | {
            "bias": float(p.bias),
            "op": code(p.op, OPERATIONS),
            # One of four pairs of signed and unsigned bytes; each has an inner loop of its own.
            "types": 2 * code(p.dtype, EIGHT_BITS) + code(p.weight_dtype, EIGHT_BITS),
            "channels_last": float(p.channels_last),
            "per_channel": float(p.per_channel),
        }

    def details(self, p: ConvInt8) -> dict[str, float]:
        return convolution.convolution_details(p)

    def shape_group(self, p: ConvInt8) -> str:
        return f"{p.op}-{convolution.convolution_group(p)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvInt8 | None:
        found = convolution.drawn_sizes(values)
        if setting.language != "onnx" or found is None:
            return None
        sizes, _ = found
        if not convolution.may_be_drawn(Convolution(**sizes), setting.dtype, bias=values["bias"]):
            return None
        qlinear = values["op"] == "qlinear"
        return ConvInt8(
            **sizes,
            op=values["op"],
            bias=values["bias"] and qlinear,
            channels_last=values["channels_last"] and qlinear,
            per_channel=values["per_channel"] and qlinear,
            weight_dtype="int8" if qlinear else "uint8",
        )

    def vary(self, p: ConvInt8, width: float, extent: float) -> ConvInt8:
        return convolution.resized(p, width, extent)

    def from_onnx(self, node: OnnxNode) -> ConvInt8 | None:
        integer = node.op_type == "ConvInteger"
        x, w = present(node, 0), present(node, 1 if integer else 3)
        if x is None or w is None or len(x.spec.shape) not in {3, 4} or not w.constant:
            return None
        if x.spec.dtype not in EIGHT_BITS or w.spec.dtype not in EIGHT_BITS:
            return None
        last = bool(node.attributes.get("channels_last", 0))
        shape, kernel = nchw(x.spec.shape) if last else x.spec.shape, w.spec.shape[2:]
        return ConvInt8(
            op="integer" if integer else "qlinear",
            batch=shape[0],
            channels_in=shape[1],
            channels_out=w.spec.shape[0],
            size=shape[2:],
            kernel=kernel,
            **read_window(node, shape[2:], kernel),
            groups=int(node.attributes.get("group", 1)),
            bias=not integer and present(node, 8) is not None,
            channels_last=last,
            per_channel=not integer and is_per_channel(node, 4),
            weight_dtype=w.spec.dtype,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: ConvInt8) -> OnnxNode | None:
        x, w = data(p.input.shape, p.dtype), weight(p.weight, p.weight_dtype)
        attributes = window_attributes(p.kernel, p.stride, p.pads, p.dilation, p.groups)
        if p.op == "integer":
            # The image's scale and zero point are computed while the network runs.
            inputs: list[Operand | None] = [x, w, data((), p.dtype), zero_point(p.weight_dtype)]
            return build("ConvInteger", inputs, [p.output], attributes)
        factors = weight_quantisation(p.channels_out, p.weight_dtype, per_channel=p.per_channel and p.channels_out > 1)
        bias = weight((p.channels_out,), "int32") if p.bias else None
        inputs = [x, *quantisation(p.dtype), w, *factors, *quantisation(p.dtype), bias]
        if p.channels_last:
            return build(_CHANNELS_LAST, inputs, [p.output], {**attributes, "channels_last": 1})
        return build("QLinearConv", inputs, [p.output], attributes)


KIND = ConvInt8Kind()
