"""Windows and layouts of images in ATen calls."""

from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._aten import calls
from opmark.kinds._shared.convolution import ConvolutionSizes
from opmark.kinds._shared.shapes import Shape


def both_sides(padding: Any, kernel: Shape, dilation: Shape) -> Shape:
    """Pads (all beginnings, then all ends) for a number, a list, or one of the words `valid` and `same`."""
    if padding == "valid":
        return (0,) * (2 * len(kernel))
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    return calls.each(padding, len(kernel)) * 2


def adaptive_window(size: Shape, wanted: Shape) -> dict[str, Any] | None:
    """The window that makes `wanted` positions; None where it would have to enlarge the image.

    Windows of unequal sizes: the largest one that steps evenly stands for them.
    """
    stride = tuple(n // m for n, m in zip(size, wanted, strict=True))
    if min(stride) < 1:
        return None
    kernel = tuple(n - (m - 1) * s for n, m, s in zip(size, wanted, stride, strict=True))
    return {"kernel": kernel, "stride": stride}


def clipped_window(size: Shape, kernel: Shape, stride: Shape, pads: Shape) -> dict[str, Any]:
    """The window clipped to the padded image: a larger one sees all of it once."""
    whole = tuple(n + 2 * pad for n, pad in zip(size, pads, strict=False))
    return {
        "kernel": tuple(min(k, n) for k, n in zip(kernel, whole, strict=True)),
        "stride": tuple(1 if k > n else s for k, n, s in zip(kernel, whole, stride, strict=True)),
    }


def is_channels_last(call: AtenCall, *tensors: tuple[int, TensorSpec]) -> bool:
    """True if any of the tensors (argument index and spec) makes torch compute with channels last.

    A shape that is stored the same way in both layouts does not count.
    """
    return any(
        len(spec.shape) == 4 and calls.stride(call, index) == calls.channels_last(spec.shape) != calls.dense(spec.shape)
        for index, spec in tensors
    )


def seen_channels_first(shape: Shape) -> calls.Strides:
    """Strides of a single image with channels last that torch takes for one with channels first.

    A view that splits the pixels of a transposed matrix has them. The step between images is smaller than an image,
    and torch's `is_channels_last_strides_2d` (c10/core/MemoryFormat.h, 2.13) believes it, although there is one image.
    """
    return (shape[1], *calls.channels_last(shape)[1:])


def is_seen_channels_first(call: AtenCall, index: int, spec: TensorSpec) -> bool:
    """True if the tensor is a single image with channels last that torch takes for one with channels first."""
    found, last = calls.stride(call, index), calls.channels_last(spec.shape)
    return (
        len(spec.shape) == 4
        and spec.shape[0] == 1
        and found is not None
        and found[1:] == last[1:] != calls.dense(spec.shape)[1:]
        and found[0] < last[0]
    )


def convolution_call(
    p: ConvolutionSizes,
    output: Shape,
    weight: Shape,
    *,
    bias: bool,
    dtype: str,
    channels_last: bool = False,
    transposed: bool = False,
    output_pads: Shape = (),
) -> AtenCall | None:
    """The general convolution call, or None where the pads of the two sides differ."""
    axes = len(p.size)
    if p.pads[:axes] != p.pads[axes:]:
        return None
    return calls.build(
        "convolution",
        TensorSpec(p.input_shape, dtype),
        TensorSpec(weight, dtype),
        TensorSpec((p.channels_out,), dtype) if bias else None,
        p.stride,
        p.pads[:axes],
        p.dilation,
        transposed,
        output_pads or (0,) * axes,
        p.groups,
        outputs=[TensorSpec(output, dtype)],
        weights=(1, 2) if bias else (1,),
        strides=(calls.channels_last(p.input_shape),) if channels_last else (),
    )
