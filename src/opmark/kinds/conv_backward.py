"""Gradients of a convolution: of its input, its weights and its bias, whichever are asked for, in one call."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from opmark.core.call import AtenCall
from opmark.core.kind import Choice, Kind, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import calls as _aten
from opmark.kinds._conv_aten import is_channels_last
from opmark.kinds._shared.shapes import size_bytes
from opmark.kinds.conv import KIND as CONV
from opmark.kinds.conv import Conv
from opmark.kinds.conv_transpose import ConvTranspose

_MOST_FLOPS = 8_000_000_000
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvBackward:
    """Of the convolution with these sizes, or the transposed one; `pads` has one entry per axis, the same both sides.

    `input_gradient`, `weight_gradient` and `bias` say which gradients there are; `channels_last` is the layout.
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
    input_gradient: bool = True
    weight_gradient: bool = True
    bias: bool = False
    transposed: bool = False
    output_pads: tuple[int, ...] = ()
    channels_last: bool = False
    dtype: str = "float32"

    @property
    def forward(self) -> Conv | ConvTranspose:
        """The convolution whose gradients these are."""
        sizes: dict[str, Any] = {
            "batch": self.batch,
            "channels_in": self.channels_in,
            "channels_out": self.channels_out,
            "size": self.size,
            "kernel": self.kernel,
            "stride": self.stride,
            "pads": self.pads * 2,
            "dilation": self.dilation,
            "groups": self.groups,
            "dtype": self.dtype,
        }
        if self.transposed:
            return ConvTranspose(**sizes, output_pads=self.output_pads)
        return Conv(**sizes, channels_last=self.channels_last)


class ConvBackwardKind(Kind[ConvBackward]):
    """Gradients of a convolution."""

    name = "conv-backward"
    parameters = ConvBackward
    matrix = True
    languages = ("aten",)
    aten_ops = frozenset({"convolution_backward"})
    space = {
        **{name: axis for name, axis in CONV.space.items() if name not in {"activation", "residual"}},
        "first": Choice((False, False, False, False, True)),
    }

    def work(self, p: ConvBackward) -> Work:
        forward, item = p.forward, p.dtype
        x, w = size_bytes((p.batch, p.channels_in, *p.size), item), size_bytes(forward.weight, item)
        elements = math.prod(forward.output)
        per_gradient = (
            2 * math.prod((p.batch, p.channels_in, *p.size)) * math.prod(forward.weight[1:])
            if p.transposed
            else 2 * elements * math.prod(forward.weight[1:])
        )
        bias_bytes = size_bytes((p.channels_out,), item)
        return Work(
            flops=per_gradient * (p.input_gradient + p.weight_gradient) + elements * p.bias,
            read_bytes=size_bytes(forward.output, item) + x * p.weight_gradient + w * p.input_gradient,
            written_bytes=x * p.input_gradient + w * p.weight_gradient + bias_bytes * p.bias,
            weight_bytes=w * p.input_gradient,
        )

    def features(self, p: ConvBackward) -> dict[str, float]:
        forward = p.forward
        result = forward.output[2:]
        return {
            "batch": p.batch,
            "channels_in": p.channels_in,
            "channels_out": p.channels_out,
            "height": p.size[0] if len(p.size) > 1 else 1,
            "width": p.size[-1],
            "output_height": result[0] if len(p.size) > 1 else 1,
            "output_width": result[-1],
            "kernel_height": p.kernel[0] if len(p.kernel) > 1 else 1,
            "kernel_width": p.kernel[-1],
            "stride": max(p.stride),
            "dilation": max(p.dilation),
            "padded": float(any(p.pads)),
            "groups": p.groups,
            "group_channels_in": p.channels_in // p.groups,
            "group_channels_out": p.channels_out // p.groups,
            "rows": p.batch * math.prod(result),
            "depth": math.prod(forward.weight[1:]),
            "input_gradient": float(p.input_gradient),
            "weight_gradient": float(p.weight_gradient),
            "bias": float(p.bias),
            "transposed": float(p.transposed),
            "channels_last": float(p.channels_last),
        }

    def shape_group(self, p: ConvBackward) -> str:
        return f"{p.size}-{p.kernel}-{p.stride}-{p.groups > 1}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> ConvBackward | None:
        drawn = CONV.draw({**values, "activation": "", "residual": False}, replace(setting, language="aten"))
        if drawn is None:
            return None
        found = _of(drawn, input_gradient=not values["first"], weight_gradient=True, bias=drawn.bias)
        work = self.work(found)
        return found if work.flops <= _MOST_FLOPS and work.moved_bytes <= _MOST_BYTES else None

    def vary(self, p: ConvBackward, width: float, extent: float) -> ConvBackward:
        if p.transposed:
            return p
        forward = p.forward
        assert isinstance(forward, Conv)
        return _of(
            CONV.vary(forward, width, extent),
            input_gradient=p.input_gradient,
            weight_gradient=p.weight_gradient,
            bias=p.bias,
            output_pads=p.output_pads,
        )

    def from_aten(self, call: AtenCall) -> ConvBackward | None:
        x, w = _aten.tensor(call, 1), _aten.tensor(call, 2)
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
            stride=_aten.each(stride, axes),
            pads=_aten.each(pads, axes),
            dilation=_aten.each(dilation, axes),
            groups=groups,
            input_gradient=mask[0],
            weight_gradient=mask[1],
            bias=mask[2],
            transposed=transposed,
            output_pads=_aten.each(output_pads, axes) if transposed else (),
            channels_last=is_channels_last(call, (1, x), (2, w)) and not transposed,
            dtype=x.dtype,
        )

    def to_aten(self, p: ConvBackward) -> AtenCall | None:
        forward, axes = p.forward, len(p.size)
        x, w = (p.batch, p.channels_in, *p.size), forward.weight
        layouts = (_aten.channels_last(forward.output), _aten.channels_last(x)) if p.channels_last else ()
        mask = (p.input_gradient, p.weight_gradient, p.bias)
        results = (x, w, (p.channels_out,))
        return _aten.build(
            "convolution_backward",
            TensorSpec(forward.output, p.dtype),
            TensorSpec(x, p.dtype),
            TensorSpec(w, p.dtype),
            (p.channels_out if p.bias else 0,),
            p.stride,
            p.pads,
            p.dilation,
            p.transposed,
            p.output_pads or (0,) * axes,
            p.groups,
            mask,
            outputs=[TensorSpec(shape, p.dtype) for shape, asked in zip(results, mask, strict=True) if asked],
            weights=(2,),
            strides=layouts,
        )


def _of(forward: Conv, **flags: Any) -> ConvBackward:
    """The gradients of `forward`, whose pads are the same on both sides."""
    known = {field.name for field in fields(ConvBackward)}
    sizes = {name: value for name, value in asdict(forward).items() if name in known}
    return ConvBackward(**(sizes | {"pads": forward.pads[: len(forward.size)]} | flags))


KIND = ConvBackwardKind()
