"""Transposed convolution, the upsampling half of an encoder–decoder."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls, windows
from opmark.kinds._onnx.nodes import build, data, present, weight, window_attributes
from opmark.kinds._shared.convolution import ConvolutionSizes, image_features
from opmark.kinds._shared.shapes import Shape, scaled, size_bytes
from opmark.kinds._shared.windows import transposed_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTranspose(ConvolutionSizes):
    """`pads` are cut from the result: all beginnings, then all ends; `output_pads` widen its ends."""

    output_pads: tuple[int, ...]
    bias: bool = True
    dtype: str = "float32"

    @property
    def output_size(self) -> Shape:
        """Spatial shape of the result."""
        return transposed_outputs(
            self.size, self.kernel, self.stride, self.pads, self.dilation, output_pads=self.output_pads
        )

    @property
    def output_shape(self) -> Shape:
        """Shape of the result."""
        return (self.batch, self.channels_out, *self.output_size)

    @property
    def weight(self) -> Shape:
        """Shape of the weights, input channels first."""
        return (self.channels_in, self.channels_out // self.groups, *self.kernel)


class ConvTransposeKind(Kind[ConvTranspose]):
    """Transposed convolution."""

    name = "conv-transpose"
    parameters = ConvTranspose
    matrix = True
    most_flops = 6_000_000_000
    onnx_ops = frozenset({"ConvTranspose"})
    aten_ops = frozenset({"convolution", "_convolution", "conv_transpose1d", "conv_transpose2d"})
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
        return Work(
            flops=2 * positions * math.prod(p.weight) + (math.prod(p.output_shape) if p.bias else 0),
            read_bytes=size_bytes(p.input_shape, p.dtype) + weight_bytes,
            written_bytes=size_bytes(p.output_shape, p.dtype),
            weight_bytes=weight_bytes,
        )

    def features(self, p: ConvTranspose) -> dict[str, float]:
        return image_features(p, p.output_size) | {"groups": p.groups, "bias": float(p.bias)}

    def shape_group(self, p: ConvTranspose) -> str:
        return f"{p.batch}-{p.size}-{p.kernel}-{p.stride}-g{p.groups}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvTranspose | None:
        kernel, stride = values["kernel"], values["stride"]
        if stride > kernel:
            return None
        p = ConvTranspose(
            batch=values["batch"],
            channels_in=values["channels_in"],
            channels_out=values["channels_out"],
            size=(values["size"],) * 2,
            kernel=(kernel,) * 2,
            stride=(stride,) * 2,
            pads=((kernel - stride) // 2,) * 4,
            output_pads=(0, 0),
            dilation=(1, 1),
            bias=values["bias"],
            dtype=setting.dtype,
        )
        return self.within_limits(p)

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
            full = transposed_outputs(size, kernel, stride, zeros * 2, dilation)
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
        inputs = [
            data(p.input_shape, p.dtype),
            weight(p.weight, p.dtype),
            weight((p.channels_out,), p.dtype) if p.bias else None,
        ]
        attributes = window_attributes(p.kernel, p.stride, p.pads, p.dilation, p.groups, output_padding=p.output_pads)
        return build("ConvTranspose", inputs, [TensorSpec(p.output_shape, p.dtype)], attributes)

    def from_aten(self, call: AtenCall) -> ConvTranspose | None:
        x, w = calls.tensor(call, 0), calls.tensor(call, 1)
        if x is None or w is None or len(x.shape) not in {3, 4} or len(w.shape) != len(x.shape):
            return None
        axes = len(x.shape) - 2
        general = calls.operator(call) in {"convolution", "_convolution"}
        if general and not calls.argument(call, 6, "transposed", False):
            return None
        dilation_at, output_pads_at, groups_at = (5, 7, 8) if general else (7, 5, 6)
        groups = int(calls.argument(call, groups_at, "groups", 1))
        return ConvTranspose(
            batch=x.shape[0],
            channels_in=x.shape[1],
            channels_out=w.shape[1] * groups,
            size=x.shape[2:],
            kernel=w.shape[2:],
            stride=calls.each(calls.argument(call, 3, "stride", 1), axes),
            pads=calls.each(calls.argument(call, 4, "padding", 0), axes) * 2,
            output_pads=calls.each(calls.argument(call, output_pads_at, "output_padding", 0), axes),
            dilation=calls.each(calls.argument(call, dilation_at, "dilation", 1), axes),
            groups=groups,
            bias=calls.tensor(call, 2, "bias") is not None,
            dtype=x.dtype,
        )

    def to_aten(self, p: ConvTranspose) -> AtenCall | None:
        return windows.convolution_call(
            p, p.output_shape, p.weight, bias=p.bias, dtype=p.dtype, transposed=True, output_pads=p.output_pads
        )


KIND = ConvTransposeKind()
