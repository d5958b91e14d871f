"""Transposed convolution, the upsampling half of an encoder–decoder."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall, OnnxNode
from opmark.core.kind import Choice, Kind, Range, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds import _conv_aten
from opmark.kinds._onnx.nodes import build, data, present, weight
from opmark.kinds._shared.shapes import scaled, size_bytes

_MOST_FLOPS = 6_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTranspose:
    """`pads` are cut from the result: all begins, then all ends; `output_pads` widen its ends."""

    batch: int
    channels_in: int
    channels_out: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    output_pads: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    bias: bool = True
    dtype: str = "float32"

    @property
    def output_size(self) -> tuple[int, ...]:
        """Spatial shape of the result."""
        axes = len(self.size)
        return tuple(
            (self.size[axis] - 1) * self.stride[axis]
            - self.pads[axis]
            - self.pads[axes + axis]
            + self.dilation[axis] * (self.kernel[axis] - 1)
            + 1
            + self.output_pads[axis]
            for axis in range(axes)
        )

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (self.batch, self.channels_out, *self.output_size)

    @property
    def weight(self) -> tuple[int, ...]:
        """Shape of the weights, input channels first."""
        return (self.channels_in, self.channels_out // self.groups, *self.kernel)


class ConvTransposeKind(Kind[ConvTranspose]):
    """Transposed convolution."""

    name = "conv-transpose"
    parameters = ConvTranspose
    matrix = True
    onnx_ops = frozenset({"ConvTranspose"})
    aten_ops = _conv_aten.TRANSPOSED_NAMES
    space = {
        "batch": Choice((1, 1, 1, 4)),
        "size": Range(4, 112),
        "channels_in": Range(8, 512, 8),
        "channels_out": Range(3, 512),
        "kernel": Choice((2, 3, 4, 4)),
        "stride": Choice((1, 2, 2, 2)),
        "bias": Choice((True, False)),
    }

    def work(self, p: ConvTranspose) -> Work:
        positions = p.batch * math.prod(p.size)
        weight_bytes = size_bytes(p.weight, p.dtype) + (size_bytes((p.channels_out,), p.dtype) if p.bias else 0)
        flops = 2 * positions * math.prod(p.weight) + (math.prod(p.output) if p.bias else 0)
        return Work(
            flops=flops,
            read_bytes=size_bytes((p.batch, p.channels_in, *p.size), p.dtype) + weight_bytes,
            written_bytes=size_bytes(p.output, p.dtype),
            weight_bytes=weight_bytes,
        )

    def features(self, p: ConvTranspose) -> dict[str, float]:
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
            "groups": p.groups,
            "bias": float(p.bias),
        }

    def shape_group(self, p: ConvTranspose) -> str:
        return f"{p.batch}-{p.size}-{p.kernel}-{p.stride}-g{p.groups}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvTranspose | None:
        kernel, stride = values["kernel"], values["stride"]
        if stride > kernel:
            return None
        pad = (kernel - stride) // 2
        p = ConvTranspose(
            batch=values["batch"],
            channels_in=values["channels_in"],
            channels_out=values["channels_out"],
            size=(values["size"],) * 2,
            kernel=(kernel,) * 2,
            stride=(stride,) * 2,
            pads=(pad,) * 4,
            output_pads=(0, 0),
            dilation=(1, 1),
            bias=values["bias"],
            dtype=setting.dtype,
        )
        return p if self.work(p).flops <= _MOST_FLOPS else None

    def vary(self, p: ConvTranspose, width: float, extent: float) -> ConvTranspose:
        return replace(
            p,
            channels_in=scaled(p.channels_in, width, p.groups),
            channels_out=scaled(p.channels_out, width, p.groups),
            size=tuple(max(1, scaled(n, extent)) if n > 1 else 1 for n in p.size),
        )

    def from_onnx(self, node: OnnxNode) -> ConvTranspose | None:
        x, w = present(node, 0), present(node, 1)
        if x is None or w is None or len(x.spec.shape) not in {3, 4}:
            return None
        size, kernel, get = x.spec.shape[2:], w.spec.shape[2:], node.attributes.get
        ones, zeros = (1,) * len(size), (0,) * len(size)
        groups, stride, dilation = get("group", 1), tuple(get("strides", ones)), tuple(get("dilations", ones))
        output_pads, pads = tuple(get("output_padding", zeros)), tuple(get("pads", zeros * 2))
        result = node.outputs[0]
        if get("auto_pad", "NOTSET") not in {"NOTSET", "VALID"} or get("output_shape") is not None:
            # Only the sum of both ends matters to the time; it follows from the result's shape.
            if result is None:
                return None
            full = ((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(size, stride, dilation, kernel, strict=True))
            cut = [have - want for have, want in zip(full, result.shape[2:], strict=True)]
            output_pads = tuple(max(0, -c) for c in cut)
            pads = (*(max(0, c) // 2 for c in cut), *(max(0, c) - max(0, c) // 2 for c in cut))
        return ConvTranspose(
            batch=x.spec.shape[0],
            channels_in=x.spec.shape[1],
            channels_out=w.spec.shape[1] * groups,
            size=size,
            kernel=kernel,
            stride=stride,
            pads=pads,
            output_pads=output_pads,
            dilation=dilation,
            groups=groups,
            bias=present(node, 2) is not None,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: ConvTranspose) -> OnnxNode | None:
        attributes = {
            "kernel_shape": p.kernel,
            "strides": p.stride,
            "pads": p.pads,
            "output_padding": p.output_pads,
            "dilations": p.dilation,
            "group": p.groups,
        }
        inputs = [
            data((p.batch, p.channels_in, *p.size), p.dtype),
            weight(p.weight, p.dtype),
            weight((p.channels_out,), p.dtype) if p.bias else None,
        ]
        return build("ConvTranspose", inputs, [TensorSpec(p.output, p.dtype)], attributes)

    def from_aten(self, call: AtenCall) -> ConvTranspose | None:
        found = _conv_aten.read_transposed(call)
        return None if found is None else ConvTranspose(**found)

    def to_aten(self, p: ConvTranspose) -> AtenCall | None:
        return _conv_aten.write_transposed(p)


KIND = ConvTransposeKind()
