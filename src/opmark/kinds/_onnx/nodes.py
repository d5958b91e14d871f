"""Reading and building ONNX nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._shared.shapes import Shape

MICROSOFT = "com.microsoft"
NCHWC = "com.microsoft.nchwc"
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 16: "bfloat16",
}  # fmt: skip


def qualified(node: OnnxNode) -> str:
    """`Conv`, or `com.microsoft:FusedConv` outside the default domain."""
    return f"{node.domain}:{node.op_type}" if node.domain else node.op_type


def split_name(name: str) -> tuple[str, str]:
    """The domain and operator of a qualified name."""
    domain, _, op_type = name.rpartition(":")
    return domain, op_type


def data(shape: Sequence[int], dtype: str, *, limit: int | None = None) -> Operand:
    """An activation input."""
    return Operand(spec=TensorSpec(tuple(shape), dtype), limit=limit)


def weight(shape: Sequence[int], dtype: str, *, limit: int | None = None) -> Operand:
    """A constant input whose elements do not matter."""
    return Operand(spec=TensorSpec(tuple(shape), dtype), constant=True, limit=limit)


def constant(values: Sequence[Any], dtype: str = "int64", shape: Sequence[int] | None = None) -> Operand:
    """A constant input with these elements, a vector unless `shape` says otherwise."""
    spec = TensorSpec((len(values),) if shape is None else tuple(shape), dtype)
    return Operand(spec=spec, constant=True, value=tuple(values))


def present(node: OnnxNode, index: int) -> Operand | None:
    """The operand at `index`, or None where it is omitted."""
    return node.inputs[index] if index < len(node.inputs) else None


def elements(node: OnnxNode, index: int) -> tuple[Any, ...] | None:
    """The elements of the constant at `index`, where they are known."""
    operand = present(node, index)
    return operand.value if operand is not None else None


def whole(node: OnnxNode, name: str, index: int | None = None) -> tuple[int, ...] | None:
    """Whole numbers that older operator sets keep in attribute `name` and newer ones in input `index`."""
    if name in node.attributes:
        value = node.attributes[name]
        return tuple(value) if isinstance(value, (tuple, list)) else (int(value),)
    values = elements(node, index) if index is not None else None
    return None if values is None else tuple(int(value) for value in values)


def build(
    name: str,
    inputs: Sequence[Operand | None],
    outputs: Sequence[TensorSpec | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int = 20,
    block: int = 0,
) -> OnnxNode:
    """The node called `name` (qualified); trailing omitted inputs are dropped."""
    kept = list(inputs)
    while kept and kept[-1] is None:
        kept.pop()
    domain, op_type = split_name(name)
    return OnnxNode(
        op_type=op_type,
        domain=domain,
        inputs=tuple(kept),
        outputs=tuple(outputs),
        attributes=dict(attributes or {}),
        opset=opset,
        block=block,
    )


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
