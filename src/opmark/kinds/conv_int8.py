"""Convolution of eight-bit numbers: into eight bits with channels last, or into 32-bit sums."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import OnnxNode, Operand
from opmark.core.kind import Choice, Kind, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, weight
from opmark.kinds._onnx.quantised import (
    EIGHT_BITS,
    is_per_channel,
    nchw,
    nhwc,
    quantisation,
    weight_quantisation,
    zero_point,
)
from opmark.kinds._shared.shapes import code, resolved_pads
from opmark.kinds.conv import KIND as CONV
from opmark.kinds.conv import Conv

_LAST = f"{MICROSOFT}:QLinearConv"
OPERATIONS = ("qlinear", "integer")
# Per element of the result: scale, round, add and clamp.
_REQUANTISE = 3
_GEOMETRY = (
    "batch", "channels_in", "channels_out", "size", "kernel", "stride", "pads", "dilation", "groups", "bias",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvInt8:
    """`qlinear` gives eight bits, `integer` 32-bit sums; shapes as in `Conv`, always told channels first.

    `channels_last` is how tensors lie in memory; `per_channel` is a scale per output channel; `dtype` and
    `weight_dtype` are of the image and of the weights.
    """

    op: str
    batch: int
    channels_in: int
    channels_out: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    bias: bool = False
    channels_last: bool = False
    per_channel: bool = False
    weight_dtype: str = "int8"
    dtype: str = "uint8"

    @property
    def plain(self) -> Conv:
        """The convolution without its element types."""
        return Conv(**{name: getattr(self, name) for name in _GEOMETRY}, dtype=self.dtype)

    @property
    def input(self) -> TensorSpec:
        """The image as it lies in memory."""
        shape = (self.batch, self.channels_in, *self.size)
        return TensorSpec(nhwc(shape) if self.channels_last else shape, self.dtype)

    @property
    def output(self) -> TensorSpec:
        """The result as it lies in memory."""
        shape = self.plain.output
        return TensorSpec(nhwc(shape) if self.channels_last else shape, "int32" if self.op == "integer" else self.dtype)


class ConvInt8Kind(Kind[ConvInt8]):
    """Eight-bit convolution."""

    name = "conv-int8"
    parameters = ConvInt8
    matrix = True
    languages = ("onnx",)
    dtypes = frozenset({"int8"})
    categories = ("op", "types")
    onnx_ops = frozenset({"QLinearConv", _LAST, "ConvInteger"})
    space = {
        **{name: axis for name, axis in CONV.space.items() if name not in {"activation", "residual", "layout"}},
        "op": Choice(("qlinear", "qlinear", "qlinear", "integer")),
        "channels_last": Choice((True, True, True, False)),
        "per_channel": Choice((False, False, False, True)),
    }

    def work(self, p: ConvInt8) -> Work:
        weight_bytes = math.prod(p.plain.weight) + 4 * p.channels_out * (p.bias + p.per_channel)
        per_element = 2 * math.prod(p.plain.weight[1:]) + p.bias + (_REQUANTISE if p.op == "qlinear" else 0)
        return Work(
            flops=p.output.elements * per_element,
            read_bytes=p.input.size_bytes + weight_bytes,
            written_bytes=p.output.size_bytes,
            weight_bytes=weight_bytes,
        )

    def features(self, p: ConvInt8) -> dict[str, float]:
        fused = {"residual", "activation", "block", "channels_last", "plain_input"}
        geometry = {name: value for name, value in CONV.features(p.plain).items() if name not in fused}
        return geometry | {
            "op": code(p.op, OPERATIONS),
            # Which of the four pairs of signed and unsigned bytes: each has its own inner loop.
            "types": 2 * code(p.dtype, EIGHT_BITS) + code(p.weight_dtype, EIGHT_BITS),
            "channels_last": float(p.channels_last),
            "per_channel": float(p.per_channel),
        }

    def details(self, p: ConvInt8) -> dict[str, float]:
        return CONV.details(p.plain)

    def shape_group(self, p: ConvInt8) -> str:
        return f"{p.op}-{CONV.shape_group(p.plain)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvInt8 | None:
        if setting.language != "onnx":
            return None
        plain = {"activation": "", "residual": False, "layout": "plain"}
        found = CONV.draw({**values, **plain}, setting)
        if found is None:
            return None
        integer = values["op"] == "integer"
        geometry = {name: getattr(found, name) for name in _GEOMETRY}
        return ConvInt8(
            **geometry | ({"bias": False} if integer else {}),
            op=values["op"],
            channels_last=values["channels_last"] and not integer,
            per_channel=values["per_channel"] and not integer,
            weight_dtype="uint8" if integer else "int8",
        )

    def vary(self, p: ConvInt8, width: float, extent: float) -> ConvInt8:
        varied = CONV.vary(p.plain, width, extent)
        return replace(p, **{name: getattr(varied, name) for name in _GEOMETRY})

    def from_onnx(self, node: OnnxNode) -> ConvInt8 | None:
        integer = node.op_type == "ConvInteger"
        x, w = present(node, 0), present(node, 1 if integer else 3)
        if x is None or w is None or len(x.spec.shape) not in {3, 4} or not w.constant:
            return None
        if x.spec.dtype not in EIGHT_BITS or w.spec.dtype not in EIGHT_BITS:
            return None
        last = bool(node.attributes.get("channels_last", 0))
        batch, channels_in, *size = nchw(x.spec.shape) if last else x.spec.shape
        kernel, ones = w.spec.shape[2:], (1,) * len(size)
        stride = tuple(node.attributes.get("strides", ones))
        dilation = tuple(node.attributes.get("dilations", ones))
        pads = node.attributes.get("pads")
        return ConvInt8(
            op="integer" if integer else "qlinear",
            batch=batch,
            channels_in=channels_in,
            channels_out=w.spec.shape[0],
            size=tuple(size),
            kernel=kernel,
            stride=stride,
            pads=resolved_pads(
                str(node.attributes.get("auto_pad", "NOTSET")),
                tuple(pads) if pads else None,
                size=tuple(size),
                kernel=kernel,
                stride=stride,
                dilation=dilation,
            ),
            dilation=dilation,
            groups=int(node.attributes.get("group", 1)),
            bias=not integer and present(node, 8) is not None,
            channels_last=last,
            per_channel=not integer and is_per_channel(node, 4),
            weight_dtype=w.spec.dtype,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: ConvInt8) -> OnnxNode | None:
        x, w = data(p.input.shape, p.dtype), weight(p.plain.weight, p.weight_dtype)
        attributes = {
            "kernel_shape": p.kernel,
            "strides": p.stride,
            "pads": p.pads,
            "dilations": p.dilation,
            "group": p.groups,
        }
        if p.op == "integer":
            # What the image was quantised with is computed as the network runs.
            inputs: list[Operand | None] = [x, w, data((), p.dtype), zero_point(p.weight_dtype)]
            return build("ConvInteger", inputs, [p.output], attributes)
        factors = weight_quantisation(p.channels_out, p.weight_dtype, per_channel=p.per_channel and p.channels_out > 1)
        bias = weight((p.channels_out,), "int32") if p.bias else None
        inputs = [x, *quantisation(p.dtype), w, *factors, *quantisation(p.dtype), bias]
        if p.channels_last:
            return build(_LAST, inputs, [p.output], attributes | {"channels_last": 1})
        return build("QLinearConv", inputs, [p.output], attributes)


KIND = ConvInt8Kind()
