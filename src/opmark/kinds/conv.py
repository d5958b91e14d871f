"""Convolution over one or two axes, with the activations and sums that runtimes fuse into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import Choice, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls, windows
from opmark.kinds._libraries import blocked_loops, onednn
from opmark.kinds._onnx.activations import (
    ACTIVATIONS,
    activation_flops,
    activation_from_onnx,
    activation_to_onnx,
    fusable,
)
from opmark.kinds._onnx.nodes import (
    MICROSOFT,
    NCHWC,
    build,
    data,
    present,
    qualified,
    read_window,
    weight,
    window_attributes,
)
from opmark.kinds._shared import convolution
from opmark.kinds._shared.convolution import Convolution
from opmark.kinds._shared.shapes import code

_FUSED = f"{MICROSOFT}:FusedConv"
_BLOCKED = f"{NCHWC}:Conv"
# Places of stride, padding and dilation in the calls whose order is not the general one's.
_PLACES = {"mkldnn_convolution": (4, 3, 5), "cudnn_convolution": (3, 2, 4)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv(Convolution):
    """`block` is the width of the blocked channel layout, 0 for the plain one.

    A blocked kernel whose dense input has fewer channels than a block reads it plain. `channels_last` is torch's memory
    format. `residual` adds a tensor of the output's shape before `activation`.
    """

    bias: bool = True
    activation: str = ""
    residual: bool = False
    block: int = 0
    channels_last: bool = False
    dtype: str = "float32"


class ConvKind(Kind[Conv]):
    """Convolution."""

    name = "conv"
    parameters = Conv
    matrix = True
    most_flops = convolution.MOST_FLOPS
    most_bytes = convolution.MOST_BYTES
    categories = ("activation",)
    onnx_ops = frozenset({"Conv", _FUSED, _BLOCKED})
    aten_ops = frozenset({"convolution", "_convolution", "conv1d", "conv2d", *_PLACES})
    space = {
        **convolution.SPACE,
        "activation": Choice(("", "relu", "relu", "clip")),
        "residual": Choice((False, False, False, True)),
        **convolution.LAYOUT,
    }

    def work(self, p: Conv) -> Work:
        fused = p.residual + activation_flops(p.activation)
        return convolution.convolution_work(p, p.dtype, bias=p.bias, further_flops=fused, residual=p.residual)

    def features(self, p: Conv) -> dict[str, float]:
        return convolution.convolution_features(p) | {
            "bias": float(p.bias),
            "residual": float(p.residual),
            "activation": code(p.activation, ACTIVATIONS),
            "block": p.block,
            "channels_last": float(p.channels_last),
            "plain_input": float(p.block > p.channels_in and p.groups == 1),
        }

    def details(self, p: Conv) -> dict[str, float]:
        return convolution.convolution_details(p)

    def code_path(self, p: Conv) -> dict[str, float]:
        window = onednn.window(p, p.output_size, p.dtype, channels_last=p.channels_last)
        return onednn.forward_code_path(window)

    def steps(self, p: Conv) -> dict[str, float]:
        return blocked_loops.blocked_steps(p, p.block)

    def shape_group(self, p: Conv) -> str:
        return convolution.convolution_group(p)

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Conv | None:
        onnx, blocked = setting.language == "onnx", values["layout"] == "blocked"
        # "kernel" cuts the image into patches; a dilated window exceeds its kernel, and nothing is drawn
        cut = values["stride"] == "kernel"
        patches = {"stride": values["kernel"] * values["dilation"], "padding": "none"} if cut else {}
        found = convolution.drawn_sizes({**values, **patches}, setting.block if blocked and onnx else 0)
        if found is None:
            return None
        sizes, block = found
        plain = values["groups"] == "dense" and values["stride"] == 1
        p = Conv(
            **sizes,
            bias=values["bias"],
            activation=values["activation"] if onnx else "",
            residual=bool(values["residual"] and onnx and plain),
            block=block,
            channels_last=not blocked and not onnx and sizes["channels_in"] > 1,
            dtype=setting.dtype,
        )
        return self.within_limits(p) if p.valid else None

    def vary(self, p: Conv, width: float, extent: float) -> Conv:
        return convolution.resized(p, width, extent, p.block)

    def from_onnx(self, node: OnnxNode) -> Conv | None:
        x, w = present(node, 0), present(node, 1)
        activation = activation_from_onnx(dict(node.attributes))
        if x is None or w is None or activation is None or len(x.spec.shape) not in {3, 4}:
            return None
        size, kernel = x.spec.shape[2:], w.spec.shape[2:]
        return Conv(
            batch=x.spec.shape[0],
            channels_in=x.spec.shape[1],
            channels_out=w.spec.shape[0],
            size=size,
            kernel=kernel,
            **read_window(node, size, kernel),
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
        inputs = [
            data(p.input_shape, p.dtype),
            weight(p.weight, p.dtype),
            weight((p.channels_out,), p.dtype) if p.bias else None,
            data(p.output_shape, p.dtype) if p.residual else None,
        ]
        attributes = window_attributes(p.kernel, p.stride, p.pads, p.dilation, p.groups)
        outputs = [TensorSpec(p.output_shape, p.dtype)]
        return build(name, inputs, outputs, {**attributes, **activation_to_onnx(p.activation)}, block=p.block)

    def from_aten(self, call: AtenCall) -> Conv | None:
        name = calls.operator(call)
        x, w = calls.tensor(call, 0), calls.tensor(call, 1)
        if x is None or w is None or len(x.shape) not in {3, 4} or len(w.shape) != len(x.shape):
            return None
        if name in {"convolution", "_convolution"} and calls.argument(call, 6, "transposed", False):
            return None
        axes = len(x.shape) - 2
        stride, padding, dilation = (
            calls.argument(call, index, word, default)
            for index, word, default in zip(
                _PLACES.get(name, (3, 4, 5)), ("stride", "padding", "dilation"), (1, 0, 1), strict=True
            )
        )
        dilation = calls.each(dilation, axes)
        return Conv(
            batch=x.shape[0],
            channels_in=x.shape[1],
            channels_out=w.shape[0],
            size=x.shape[2:],
            kernel=w.shape[2:],
            stride=calls.each(stride, axes),
            pads=windows.both_sides(padding, w.shape[2:], dilation),
            dilation=dilation,
            groups=x.shape[1] // w.shape[1],
            # cuDNN's call has no bias.
            bias=name != "cudnn_convolution" and calls.tensor(call, 2, "bias") is not None,
            channels_last=windows.is_channels_last(call, (0, x), (1, w)),
            dtype=x.dtype,
        )

    def to_aten(self, p: Conv) -> AtenCall | None:
        # Torch fuses nothing into a convolution.
        if p.activation or p.residual or p.block:
            return None
        return windows.convolution_call(
            p, p.output_shape, p.weight, bias=p.bias, dtype=p.dtype, channels_last=p.channels_last
        )


KIND = ConvKind()
