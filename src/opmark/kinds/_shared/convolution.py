"""Convolutions as forward, eight-bit, transposed and backward kernels share them: sizes, sampling space, features."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from opmark.core.kernels.kind import Axis, Choice, Range
from opmark.core.kernels.work import Work
from opmark.kinds._shared.shapes import Shape, scaled, size_bytes
from opmark.kinds._shared.windows import valid_taps, waste, window_outputs

MOST_FLOPS = 6_000_000_000
MOST_BYTES = 128 * 2**20
# Axes of a sampling space, in the order that `Conv` draws them.
SPACE: dict[str, Axis] = {
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
}
LAYOUT: dict[str, Axis] = {"layout": Choice(("blocked", "blocked", "blocked", "plain"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionSizes:
    """`size` and `kernel` have one entry per spatial axis; channels are counted over all `groups`."""

    batch: int
    channels_in: int
    channels_out: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def input_shape(self) -> Shape:
        """Shape of the image, channels first."""
        return (self.batch, self.channels_in, *self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(ConvolutionSizes):
    """A forward convolution; `pads` holds all beginnings, then all ends."""

    @property
    def output_size(self) -> Shape:
        """Spatial shape of the result."""
        return window_outputs(self.size, self.kernel, self.stride, self.pads, self.dilation)

    @property
    def output_shape(self) -> Shape:
        """Shape of the result, channels first."""
        return (self.batch, self.channels_out, *self.output_size)

    @property
    def weight(self) -> Shape:
        """Shape of the weights."""
        return (self.channels_out, self.channels_in // self.groups, *self.kernel)

    @property
    def valid(self) -> bool:
        """True if such a convolution exists."""
        divides = self.channels_in % self.groups == 0 and self.channels_out % self.groups == 0
        return divides and min(self.output_size) > 0


C = TypeVar("C", bound=Convolution)


def sizes_of(p: ConvolutionSizes) -> dict[str, Any]:
    """The sizes alone, by name."""
    return {field.name: getattr(p, field.name) for field in fields(ConvolutionSizes)}


def convolution_work(p: Convolution, dtype: str, *, bias: bool, further_flops: int = 0, residual: bool = False) -> Work:
    """The work of a floating-point convolution; `further_flops` are those per element of the result."""
    weight_bytes = size_bytes(p.weight, dtype) + (size_bytes((p.channels_out,), dtype) if bias else 0)
    written = size_bytes(p.output_shape, dtype)
    return Work(
        flops=math.prod(p.output_shape) * (2 * math.prod(p.weight[1:]) + bias + further_flops),
        read_bytes=size_bytes(p.input_shape, dtype) + weight_bytes + (written if residual else 0),
        written_bytes=written,
        weight_bytes=weight_bytes,
    )


def image_features(p: ConvolutionSizes, output_size: Shape) -> dict[str, float]:
    """The features of every convolution, transposed ones too."""
    return {
        "batch": p.batch,
        "channels_in": p.channels_in,
        "channels_out": p.channels_out,
        "height": p.size[0] if len(p.size) > 1 else 1,
        "width": p.size[-1],
        "output_height": output_size[0] if len(p.size) > 1 else 1,
        "output_width": output_size[-1],
        "kernel_height": p.kernel[0] if len(p.kernel) > 1 else 1,
        "kernel_width": p.kernel[-1],
        "stride": max(p.stride),
        "dilation": max(p.dilation),
    }


def group_features(p: ConvolutionSizes) -> dict[str, float]:
    """Padding and groups, for forward and backward kernels."""
    return {
        "padded": float(any(p.pads)),
        "groups": p.groups,
        "group_channels_in": p.channels_in // p.groups,
        "group_channels_out": p.channels_out // p.groups,
    }


def convolution_features(p: Convolution) -> dict[str, float]:
    """The features of a forward convolution's sizes, also as the matrix product it amounts to."""
    return (
        image_features(p, p.output_size)
        | group_features(p)
        | {
            "gemm_m": p.batch * math.prod(p.output_size),
            "gemm_k": math.prod(p.weight[1:]),
            "depthwise": float(p.groups > 1 and p.groups == p.channels_in),
            "pointwise": float(math.prod(p.kernel) == 1),
        }
    )


def convolution_details(p: Convolution) -> dict[str, float]:
    """Shares and switches of a forward convolution."""
    positions = math.prod(p.output_size)
    pointwise = math.prod(p.kernel) == 1
    return {
        "valid_taps": valid_taps(
            p.size, p.output_size, kernel=p.kernel, stride=p.stride, pads=p.pads, dilation=p.dilation
        ),
        # Inner loops of vector units hold six positions times four vectors of filters in registers.
        "position_waste": waste(positions if pointwise else p.output_size[-1], 6),
        "filter_waste": waste(-(-p.channels_out // p.groups // 16), 4),
        "strided": float(max(p.stride) > 1),
        "as_product": float(pointwise and max(p.stride) == 1 and p.groups == 1),
        "single_position": float(positions == 1),
        "grouped": float(1 < p.groups < p.channels_in),
    }


def gradient_steps(p: ConvolutionSizes, *, plain: bool) -> dict[str, float]:
    """Switches of a convolution's gradients: where oneDNN 3.12 has no code of its own, it multiplies column matrices.

    `plain` says that channels come first in memory.
    """
    reach = max((k - 1) * d + 1 for k, d in zip(p.kernel, p.dilation, strict=True))
    return {
        "depthwise": float(p.groups > 1 and p.groups == p.channels_in),
        "plain_groups": float(p.groups > 1 and plain),
        "reach_over_size": reach / min(p.size),
        "strided_dilation": float(max(p.stride) > 1 and max(p.dilation) > 1),
        "few_channels": float(plain and p.groups == 1 and p.channels_in < 16),
    }


def convolution_group(p: Convolution) -> str:
    """The shape group of a forward convolution."""
    form = "depthwise" if p.groups == p.channels_in > 1 else f"g{p.groups}" if p.groups > 1 else "dense"
    return f"{p.batch}-{p.size}-{p.kernel}-{p.stride}-{p.dilation}-{form}"


def drawn_sizes(values: Mapping[str, Any], block: int = 0) -> tuple[dict[str, Any], int] | None:
    """The sizes at a point of `SPACE`, and the blocked layout's width that they allow: `block` or 0."""
    kernel, stride, dilation = values["kernel"], values["stride"], values["dilation"]
    channels_in, channels_out, form = values["channels_in"], values["channels_out"], values["groups"]
    if stride > kernel > 1 or (kernel == 1 and (stride > 2 or dilation > 1)):
        return None
    groups = 1
    if form != "dense":
        # A factor of exactly 1 would leave the channels unrounded.
        channels_in = channels_out = scaled(max(channels_in, 16), 1.0000001, 16)
        groups = channels_in if form == "depthwise" else 4
        if form == "grouped" and block and (channels_in // groups) % block:
            block = 0
    elif block:
        # The runtime pads the channels of blocked tensors, all but the plain input of a first layer.
        channels_in = channels_in if channels_in < block else -(-channels_in // block) * block
        channels_out = -(-channels_out // block) * block
    pad = dilation * (kernel - 1) // 2 if values["padding"] == "same" else 0
    sizes = {
        "batch": values["batch"],
        "channels_in": channels_in,
        "channels_out": channels_out,
        "size": (values["size"],) * 2,
        "kernel": (kernel,) * 2,
        "stride": (stride,) * 2,
        "pads": (pad,) * 4,
        "dilation": (dilation,) * 2,
        "groups": groups,
    }
    return sizes, block


def may_be_drawn(p: Convolution, dtype: str, *, bias: bool) -> bool:
    """True if the convolution exists and is small enough to measure."""
    if not p.valid:
        return False
    work = convolution_work(p, dtype, bias=bias)
    return work.flops <= MOST_FLOPS and work.moved_bytes <= MOST_BYTES


def resized(p: C, width: float, extent: float, block: int = 0) -> C:
    """`p` with its channels scaled by `width` and its image by `extent`; the image stays where it became too small."""
    multiple = block or 1
    if p.groups > 1:
        per_group = max(1, p.channels_in // p.groups)
        if per_group == 1:
            groups = scaled(p.groups, width, multiple)
            channels = {
                "groups": groups,
                "channels_in": groups,
                "channels_out": groups * p.channels_out // p.groups,
            }
        else:
            channels = {
                "channels_in": p.groups * scaled(per_group, width, multiple),
                "channels_out": p.groups * scaled(p.channels_out // p.groups, width, multiple),
            }
    else:
        fixed = p.channels_in <= 4 or p.channels_in < block
        channels = {
            "channels_in": p.channels_in if fixed else scaled(p.channels_in, width, multiple),
            "channels_out": scaled(p.channels_out, width, multiple),
        }
    size = tuple(1 if n == 1 else scaled(n, extent) for n in p.size)
    varied = replace(p, **channels, size=size)  # type: ignore[arg-type]
    return varied if varied.valid else replace(varied, size=p.size)
