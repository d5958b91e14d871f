"""The attributes of a sliding window in ONNX."""

from collections.abc import Mapping
from typing import Any

from opmark.core.call import OnnxNode
from opmark.kinds._shared.shapes import Shape


def read_window(node: OnnxNode, size: Shape, kernel: Shape) -> dict[str, Any]:
    """Stride, dilation and explicit pads (all beginnings, then all ends) of a window over an image of `size`."""
    ones = (1,) * len(size)
    stride = tuple(node.attributes.get("strides", ones))
    dilation = tuple(node.attributes.get("dilations", ones))
    pads = tuple(node.attributes.get("pads") or (0,) * (2 * len(size)))
    auto_pad = str(node.attributes.get("auto_pad", "NOTSET"))
    if auto_pad == "VALID":
        pads = (0,) * (2 * len(size))
    elif auto_pad.startswith("SAME"):
        totals = [
            max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
            for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
        ]
        small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
        pads = (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)
    return {"stride": stride, "pads": pads, "dilation": dilation}


def window_attributes(
    kernel: Shape, stride: Shape, pads: Shape, dilation: Shape, groups: int, **further: Any
) -> Mapping[str, Any]:
    """The attributes of a convolution's node."""
    return {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": pads,
        **further,
        "dilations": dilation,
        "group": groups,
    }
