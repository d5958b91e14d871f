"""Convolution over one or two axes, with what runtimes fuse into it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall, OnnxNode
from opmark.core.kind import Choice, Kind, Range, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds import _conv_aten
from opmark.kinds._onnx.activations import (
    ACTIVATIONS,
    activation_flops,
    activation_from_onnx,
    activation_to_onnx,
    fusable,
)
from opmark.kinds._onnx.nodes import MICROSOFT, NCHWC, build, data, present, qualified, weight
from opmark.kinds._shared.shapes import code, resolved_pads, scaled, size_bytes, valid_taps, waste, window_output

_FUSED = f"{MICROSOFT}:FusedConv"
_BLOCKED = f"{NCHWC}:Conv"
_MOST_FLOPS = 6_000_000_000
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """`size` and `kernel` have one entry per spatial axis; `pads` all begins, then all ends.

    `block` is the width of the blocked channel layout, 0 for the plain one; a blocked kernel whose dense input has
    fewer channels than a block reads it plain. `channels_last` is torch's memory format.
    `residual` adds a tensor of the output's shape before `activation`.
    """

    batch: int
    channels_in: int
    channels_out: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    bias: bool = True
    activation: str = ""
    residual: bool = False
    block: int = 0
    channels_last: bool = False
    dtype: str = "float32"

    @property
    def output_size(self) -> tuple[int, ...]:
        """Spatial shape of the result."""
        axes = len(self.size)
        return tuple(
            window_output(
                self.size[axis],
                self.kernel[axis],
                self.stride[axis],
                self.pads[axis] + self.pads[axes + axis],
                self.dilation[axis],
            )
            for axis in range(axes)
        )

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (self.batch, self.channels_out, *self.output_size)

    @property
    def weight(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.channels_out, self.channels_in // self.groups, *self.kernel)

    @property
    def valid(self) -> bool:
        """Whether such a convolution exists."""
        divides = self.channels_in % self.groups == 0 and self.channels_out % self.groups == 0
        return divides and min(self.output_size) > 0


class ConvKind(Kind[Conv]):
    """Convolution."""

    name = "conv"
    parameters = Conv
    matrix = True
    categories = ("activation",)
    onnx_ops = frozenset({"Conv", _FUSED, _BLOCKED})
    aten_ops = _conv_aten.NAMES
    space = {
        "batch": Choice((1, 1, 1, 1, 2, 4, 8)),
        "size": Range(7, 224),
        "channels_in": Range(3, 1024),
        "channels_out": Range(8, 1024, 8),
        "kernel": Choice((1, 1, 1, 3, 3, 3, 5, 7, 11)),
        "stride": Choice((1, 1, 1, 2, 2, 4)),
        "dilation": Choice((1, 1, 1, 1, 1, 1, 1, 2)),
        "padding": Choice(("same", "same", "same", "none")),
        "groups": Choice(("dense", "dense", "dense", "dense", "depthwise", "depthwise", "grouped")),
        "bias": Choice((True, True, True, False)),
        "activation": Choice(("", "relu", "relu", "clip")),
        "residual": Choice((False, False, False, True)),
        "layout": Choice(("blocked", "blocked", "blocked", "plain")),
    }

    def work(self, p: Conv) -> Work:
        elements = math.prod(p.output)
        weight_bytes = size_bytes(p.weight, p.dtype) + (size_bytes((p.channels_out,), p.dtype) if p.bias else 0)
        written = size_bytes(p.output, p.dtype)
        per_element = 2 * math.prod(p.weight[1:]) + p.bias + p.residual + activation_flops(p.activation)
        return Work(
            flops=elements * per_element,
            read_bytes=size_bytes((p.batch, p.channels_in, *p.size), p.dtype)
            + weight_bytes
            + (written if p.residual else 0),
            written_bytes=written,
            weight_bytes=weight_bytes,
        )

    def features(self, p: Conv) -> dict[str, float]:
        rows = p.batch * math.prod(p.output_size)
        depth = math.prod(p.weight[1:])
        return {
            "batch": p.batch,
            "channels_in": p.channels_in,
            "channels_out": p.channels_out,
            "height": p.size[0] if len(p.size) > 1 else 1,
            "width": p.size[-1],
            "output_height": p.output_size[0] if len(p.size) > 1 else 1,
            "output_width": p.output_size[-1],
            "kernel_height": p.kernel[0] if len(p.kernel) > 1 else 1,
            "kernel_width": p.kernel[-1],
            "stride": max(p.stride),
            "dilation": max(p.dilation),
            "padded": float(any(p.pads)),
            "groups": p.groups,
            "group_channels_in": p.channels_in // p.groups,
            "group_channels_out": p.channels_out // p.groups,
            "gemm_m": rows,
            "gemm_k": depth,
            "depthwise": float(p.groups > 1 and p.groups == p.channels_in),
            "pointwise": float(math.prod(p.kernel) == 1),
            "bias": float(p.bias),
            "residual": float(p.residual),
            "activation": code(p.activation, ACTIVATIONS),
            "block": p.block,
            "channels_last": float(p.channels_last),
            "plain_input": float(p.block > p.channels_in and p.groups == 1),
        }

    def details(self, p: Conv) -> dict[str, float]:
        positions = math.prod(p.output_size)
        pointwise = math.prod(p.kernel) == 1
        return {
            "valid_taps": _valid_taps(p),
            # Inner loops of vector units hold six positions times four vectors of filters in registers.
            "position_waste": waste(positions if pointwise else p.output_size[-1], 6),
            "filter_waste": waste(-(-p.channels_out // p.groups // 16), 4),
            "strided": float(max(p.stride) > 1),
            "as_product": float(pointwise and max(p.stride) == 1 and p.groups == 1),
            "single_position": float(positions == 1),
            "grouped": float(1 < p.groups < p.channels_in),
        }

    def shape_group(self, p: Conv) -> str:
        form = "depthwise" if p.groups == p.channels_in > 1 else f"g{p.groups}" if p.groups > 1 else "dense"
        return f"{p.batch}-{p.size}-{p.kernel}-{p.stride}-{p.dilation}-{form}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Conv | None:
        kernel, stride, dilation = values["kernel"], values["stride"], values["dilation"]
        channels_in, channels_out, form = values["channels_in"], values["channels_out"], values["groups"]
        if stride > kernel > 1 or (kernel == 1 and (stride > 2 or dilation > 1)):
            return None
        block = setting.block if values["layout"] == "blocked" and setting.language == "onnx" else 0
        groups = 1
        if form != "dense":
            channels_in = channels_out = scaled(max(channels_in, 16), 1.0000001, 16)
            groups = channels_in if form == "depthwise" else 4
            if form == "grouped" and block and (channels_in // groups) % block:
                block = 0
        elif block:
            # The runtime pads the channels of blocked tensors, all but the plain input of a first layer.
            channels_in = channels_in if channels_in < block else -(-channels_in // block) * block
            channels_out = -(-channels_out // block) * block
        onnx = setting.language == "onnx"
        pad = dilation * (kernel - 1) // 2 if values["padding"] == "same" else 0
        p = Conv(
            batch=values["batch"],
            channels_in=channels_in,
            channels_out=channels_out,
            size=(values["size"],) * 2,
            kernel=(kernel,) * 2,
            stride=(stride,) * 2,
            pads=(pad,) * 4,
            dilation=(dilation,) * 2,
            groups=groups,
            bias=values["bias"],
            activation=values["activation"] if onnx else "",
            residual=bool(values["residual"] and onnx and form == "dense" and stride == 1),
            block=block,
            channels_last=values["layout"] == "plain" and not onnx and channels_in > 1,
            dtype=setting.dtype,
        )
        if not p.valid:
            return None
        work = self.work(p)
        return p if work.flops <= _MOST_FLOPS and work.moved_bytes <= _MOST_BYTES else None

    def vary(self, p: Conv, width: float, extent: float) -> Conv:
        multiple = p.block or 1
        if p.groups > 1:
            per_group = max(1, p.channels_in // p.groups)
            if per_group == 1:
                groups = scaled(p.groups, width, multiple)
                sizes: dict[str, Any] = {
                    "groups": groups,
                    "channels_in": groups,
                    "channels_out": groups * p.channels_out // p.groups,
                }
            else:
                sizes = {
                    "channels_in": p.groups * scaled(per_group, width, multiple),
                    "channels_out": p.groups * scaled(p.channels_out // p.groups, width, multiple),
                }
        else:
            fixed = p.channels_in <= 4 or p.channels_in < p.block
            sizes = {
                "channels_in": p.channels_in if fixed else scaled(p.channels_in, width, multiple),
                "channels_out": scaled(p.channels_out, width, multiple),
            }
        varied = replace(p, **sizes, size=tuple(1 if n == 1 else scaled(n, extent) for n in p.size))
        return varied if varied.valid else replace(varied, size=p.size)

    def from_onnx(self, node: OnnxNode) -> Conv | None:
        x, w = present(node, 0), present(node, 1)
        activation = activation_from_onnx(dict(node.attributes))
        if x is None or w is None or activation is None or len(x.spec.shape) not in {3, 4}:
            return None
        size, kernel = x.spec.shape[2:], w.spec.shape[2:]
        ones = (1,) * len(size)
        stride = tuple(node.attributes.get("strides", ones))
        dilation = tuple(node.attributes.get("dilations", ones))
        pads = node.attributes.get("pads")
        return Conv(
            batch=x.spec.shape[0],
            channels_in=x.spec.shape[1],
            channels_out=w.spec.shape[0],
            size=size,
            kernel=kernel,
            stride=stride,
            pads=resolved_pads(
                str(node.attributes.get("auto_pad", "NOTSET")),
                tuple(pads) if pads else None,
                size=size,
                kernel=kernel,
                stride=stride,
                dilation=dilation,
            ),
            dilation=dilation,
            groups=x.spec.shape[1] // w.spec.shape[1],
            bias=present(node, 2) is not None,
            activation=activation,
            residual=present(node, 3) is not None,
            block=node.block if qualified(node) == _BLOCKED else 0,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: Conv) -> OnnxNode | None:
        if not fusable(p.activation):
            return None
        name = _BLOCKED if p.block else _FUSED if p.activation or p.residual else "Conv"
        attributes = {
            "kernel_shape": p.kernel,
            "strides": p.stride,
            "pads": p.pads,
            "dilations": p.dilation,
            "group": p.groups,
            **activation_to_onnx(p.activation),
        }
        inputs = [
            data((p.batch, p.channels_in, *p.size), p.dtype),
            weight(p.weight, p.dtype),
            weight((p.channels_out,), p.dtype) if p.bias else None,
            data(p.output, p.dtype) if p.residual else None,
        ]
        return build(name, inputs, [TensorSpec(p.output, p.dtype)], attributes, block=p.block)

    def from_aten(self, call: AtenCall) -> Conv | None:
        found = _conv_aten.read(call)
        return None if found is None else Conv(**found)

    def to_aten(self, p: Conv) -> AtenCall | None:
        return _conv_aten.write(p)


def _valid_taps(p: Conv) -> float:
    return valid_taps(p.size, p.output_size, kernel=p.kernel, stride=p.stride, pads=p.pads, dilation=p.dilation)


KIND = ConvKind()
