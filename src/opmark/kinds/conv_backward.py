"""Gradients of a convolution in one call: of its input, its weights and its bias, as requested."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls, windows
from opmark.kinds._libraries import onednn
from opmark.kinds._shared import convolution
from opmark.kinds._shared.convolution import Convolution, ConvolutionSizes
from opmark.kinds._shared.shapes import Shape, size_bytes
from opmark.kinds._shared.windows import transposed_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvBackward(ConvolutionSizes):
    """Gradients of the convolution with these sizes, or of the transposed one; `pads` has one entry per axis.

    `input_gradient`, `weight_gradient` and `bias` name the gradients; `channels_last` is the memory layout.
    """

    input_gradient: bool = True
    weight_gradient: bool = True
    bias: bool = False
    transposed: bool = False
    output_pads: tuple[int, ...] = ()
    channels_last: bool = False
    dtype: str = "float32"

    @property
    def forward(self) -> Convolution:
        """The convolution of these sizes, taken as not transposed."""
        return Convolution(**(convolution.sizes_of(self) | {"pads": self.pads * 2}))

    @property
    def output_shape(self) -> Shape:
        """Shape of the forward pass's result, and of its gradient."""
        if not self.transposed:
            return self.forward.output_shape
        size = transposed_outputs(
            self.size, self.kernel, self.stride, self.pads * 2, self.dilation, output_pads=self.output_pads
        )
        return (self.batch, self.channels_out, *size)

    @property
    def weight(self) -> Shape:
        """Shape of the weights."""
        if self.transposed:
            return (self.channels_in, self.channels_out // self.groups, *self.kernel)
        return self.forward.weight


class ConvBackwardKind(Kind[ConvBackward]):
    """Gradients of a convolution."""

    name = "conv-backward"
    parameters = ConvBackward
    matrix = True
    most_flops = 8_000_000_000
    most_bytes = 128 * 2**20
    languages = ("aten",)
    aten_ops = frozenset({"convolution_backward"})
    space = {
        **convolution.SPACE,
        **convolution.LAYOUT,
        "first": Choice((False, False, False, False, True)),
    }

    def work(self, p: ConvBackward) -> Work:
        x, w = size_bytes(p.input_shape, p.dtype), size_bytes(p.weight, p.dtype)
        elements = math.prod(p.output_shape)
        per_gradient = 2 * math.prod(p.input_shape if p.transposed else p.output_shape) * math.prod(p.weight[1:])
        return Work(
            flops=per_gradient * (p.input_gradient + p.weight_gradient) + elements * p.bias,
            read_bytes=size_bytes(p.output_shape, p.dtype) + x * p.weight_gradient + w * p.input_gradient,
            written_bytes=x * p.input_gradient
            + w * p.weight_gradient
            + size_bytes((p.channels_out,), p.dtype) * p.bias,
            weight_bytes=w * p.input_gradient,
        )

    def features(self, p: ConvBackward) -> dict[str, float]:
        output_size = p.output_shape[2:]
        return (
            convolution.image_features(p, output_size)
            | convolution.group_features(p)
            | {
                "rows": p.batch * math.prod(output_size),
                "depth": math.prod(p.weight[1:]),
                "input_gradient": float(p.input_gradient),
                "weight_gradient": float(p.weight_gradient),
                "bias": float(p.bias),
                "transposed": float(p.transposed),
                "channels_last": float(p.channels_last),
            }
        )

    def steps(self, p: ConvBackward) -> dict[str, float]:
        return convolution.gradient_steps(p, plain=not p.channels_last)

    def code_path(self, p: ConvBackward) -> dict[str, float]:
        window = onednn.window(p, p.output_shape[2:], p.dtype, channels_last=p.channels_last)
        return onednn.gradient_code_path(window, input_gradient=p.input_gradient, weight_gradient=p.weight_gradient)

    def shape_group(self, p: ConvBackward) -> str:
        return f"{p.size}-{p.kernel}-{p.stride}-{p.groups > 1}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvBackward | None:
        # "kernel" cuts the image into patches; a dilated window exceeds its kernel, and nothing is drawn
        cut = values["stride"] == "kernel"
        patches = {"stride": values["kernel"] * values["dilation"], "padding": "none"} if cut else {}
        found = convolution.drawn_sizes({**values, **patches})
        if found is None:
            return None
        sizes, _ = found
        forward, bias = Convolution(**sizes), values["bias"]
        if not convolution.may_be_drawn(forward, setting.dtype, bias=bias):
            return None
        p = ConvBackward(
            **(sizes | {"pads": forward.pads[:2]}),
            input_gradient=not values["first"],
            bias=bias,
            channels_last=values["layout"] == "plain" and forward.channels_in > 1,
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: ConvBackward, width: float, extent: float) -> ConvBackward:
        if p.transposed:
            return p
        after = convolution.sizes_of(convolution.resized(p.forward, width, extent))
        return replace(p, **(after | {"pads": p.pads}))

    def from_aten(self, call: AtenCall) -> ConvBackward | None:
        x, w = calls.tensor(call, 1), calls.tensor(call, 2)
        if x is None or w is None or len(x.shape) not in {3, 4}:
            return None
        axes = len(x.shape) - 2
        stride, pads, dilation, transposed, output_pads, groups, mask = call.arguments[4:11]
        return ConvBackward(
            batch=x.shape[0],
            channels_in=x.shape[1],
            channels_out=w.shape[1] * groups if transposed else w.shape[0],
            size=x.shape[2:],
            kernel=w.shape[2:],
            stride=calls.each(stride, axes),
            pads=calls.each(pads, axes),
            dilation=calls.each(dilation, axes),
            groups=groups,
            input_gradient=mask[0],
            weight_gradient=mask[1],
            bias=mask[2],
            transposed=transposed,
            output_pads=calls.each(output_pads, axes) if transposed else (),
            channels_last=windows.is_channels_last(call, (1, x), (2, w)) and not transposed,
            dtype=x.dtype,
        )

    def to_aten(self, p: ConvBackward) -> AtenCall | None:
        shapes = (p.input_shape, p.weight, (p.channels_out,))
        layouts = (calls.channels_last(p.output_shape), calls.channels_last(p.input_shape))
        mask = (p.input_gradient, p.weight_gradient, p.bias)
        return calls.build(
            "convolution_backward",
            *(TensorSpec(shape, p.dtype) for shape in (p.output_shape, p.input_shape, p.weight)),
            (p.channels_out if p.bias else 0,),
            p.stride,
            p.pads,
            p.dilation,
            p.transposed,
            p.output_pads or (0,) * len(p.size),
            p.groups,
            mask,
            outputs=[TensorSpec(shape, p.dtype) for shape, asked in zip(shapes, mask, strict=True) if asked],
            weights=(2,),
            strides=layouts if p.channels_last else (),
        )


KIND = ConvBackwardKind()
