"""ATen's spelling of convolutions: one general call, and shorthands that it serves."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.conv import Conv
    from opmark.kinds.conv_transpose import ConvTranspose

NAMES = frozenset({"convolution", "_convolution", "conv1d", "conv2d", "mkldnn_convolution", "cudnn_convolution"})
TRANSPOSED_NAMES = frozenset({"convolution", "_convolution", "conv_transpose1d", "conv_transpose2d"})


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Conv`, or None where it is transposed or over three axes."""
    name = _aten.operator(call)
    x, w = _aten.tensor(call, 0), _aten.tensor(call, 1)
    if x is None or w is None or len(x.shape) not in {3, 4} or len(w.shape) != len(x.shape):
        return None
    axes = len(x.shape) - 2
    if name in {"convolution", "_convolution"} and _aten.argument(call, 6, "transposed", False):
        return None
    # mkldnn_convolution has its padding first, and cudnn_convolution no bias.
    at = {"mkldnn_convolution": (4, 3, 5), "cudnn_convolution": (3, 2, 4)}.get(name, (3, 4, 5))
    stride, padding, dilation = (
        _aten.argument(call, index, word, default)
        for index, word, default in zip(at, ("stride", "padding", "dilation"), (1, 0, 1), strict=True)
    )
    stride, dilation = _aten.each(stride, axes), _aten.each(dilation, axes)
    pads = _pads(padding, w.shape[2:], dilation)
    has_bias = name != "cudnn_convolution" and _aten.tensor(call, 2, "bias") is not None
    return {
        "batch": x.shape[0],
        "channels_in": x.shape[1],
        "channels_out": w.shape[0],
        "size": x.shape[2:],
        "kernel": w.shape[2:],
        "stride": stride,
        "pads": pads,
        "dilation": dilation,
        "groups": x.shape[1] // w.shape[1],
        "bias": has_bias,
        "channels_last": is_channels_last(call, (0, x), (1, w)),
        "dtype": x.dtype,
    }


def write(p: "Conv") -> AtenCall | None:
    """The call, or None where torch fuses no such thing."""
    axes = len(p.size)
    if p.activation or p.residual or p.block or p.pads[:axes] != p.pads[axes:]:
        return None
    x, w = (p.batch, p.channels_in, *p.size), p.weight
    strides = (_aten.channels_last(x),) if p.channels_last else ()
    tensors = [TensorSpec(x, p.dtype), TensorSpec(w, p.dtype), TensorSpec((p.channels_out,), p.dtype)]
    return _aten.build(
        "convolution",
        tensors[0],
        tensors[1],
        tensors[2] if p.bias else None,
        p.stride,
        p.pads[:axes],
        p.dilation,
        False,
        (0,) * axes,
        p.groups,
        outputs=[TensorSpec(p.output, p.dtype)],
        weights=(1, 2) if p.bias else (1,),
        strides=strides,
    )


def read_transposed(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `ConvTranspose`, or None where it is not transposed."""
    name = _aten.operator(call)
    x, w = _aten.tensor(call, 0), _aten.tensor(call, 1)
    if x is None or w is None or len(x.shape) not in {3, 4} or len(w.shape) != len(x.shape):
        return None
    axes = len(x.shape) - 2
    general = name in {"convolution", "_convolution"}
    if general and not _aten.argument(call, 6, "transposed", False):
        return None
    at = (5, 7, 8) if general else (7, 5, 6)
    pads = _aten.each(_aten.argument(call, 4, "padding", 0), axes)
    groups = int(_aten.argument(call, at[2], "groups", 1))
    return {
        "batch": x.shape[0],
        "channels_in": x.shape[1],
        "channels_out": w.shape[1] * groups,
        "size": x.shape[2:],
        "kernel": w.shape[2:],
        "stride": _aten.each(_aten.argument(call, 3, "stride", 1), axes),
        "pads": pads * 2,
        "output_pads": _aten.each(_aten.argument(call, at[1], "output_padding", 0), axes),
        "dilation": _aten.each(_aten.argument(call, at[0], "dilation", 1), axes),
        "groups": groups,
        "bias": _aten.tensor(call, 2, "bias") is not None,
        "dtype": x.dtype,
    }


def write_transposed(p: "ConvTranspose") -> AtenCall | None:
    """The call, or None where its pads are not the same on both sides."""
    axes = len(p.size)
    if p.pads[:axes] != p.pads[axes:]:
        return None
    return _aten.build(
        "convolution",
        TensorSpec((p.batch, p.channels_in, *p.size), p.dtype),
        TensorSpec(p.weight, p.dtype),
        TensorSpec((p.channels_out,), p.dtype) if p.bias else None,
        p.stride,
        p.pads[:axes],
        p.dilation,
        True,
        p.output_pads,
        p.groups,
        outputs=[TensorSpec(p.output, p.dtype)],
        weights=(1, 2) if p.bias else (1,),
    )


def _pads(padding: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    if padding == "valid":
        return (0,) * (2 * len(kernel))
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    return _aten.each(padding, len(kernel)) * 2


def is_channels_last(call: AtenCall, *tensors: tuple[int, TensorSpec]) -> bool:
    """Any tensor (its argument's index and itself) stored channels last makes torch take that path.

    Unless the two layouts are the same.
    """
    return any(
        len(spec.shape) == 4 and _aten.stride(call, index) == _aten.channels_last(spec.shape) != _aten.dense(spec.shape)
        for index, spec in tensors
    )
