"""Scales and zero points around the tensors of ONNX's eight-bit operators."""

from collections.abc import Sequence

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.kinds._onnx.nodes import constant, present, weight
from opmark.kinds._shared.shapes import Shape

# Any scale will do: no kernel's time depends on it, and this one keeps sums of products inside eight bits.
_SCALE = 0.02


def scale() -> Operand:
    """The constant scale of a whole tensor."""
    return constant((_SCALE,), "float32", ())


def zero_point(dtype: str) -> Operand:
    """The constant zero point of a whole tensor, in the middle of the range."""
    return constant((128 if dtype == "uint8" else 0,), dtype, ())


def quantisation(dtype: str) -> tuple[Operand, Operand]:
    """Scale and zero point of a whole tensor."""
    return scale(), zero_point(dtype)


def weight_quantisation(channels: int, dtype: str, *, per_channel: bool) -> tuple[Operand, Operand]:
    """Scale and zero point of weights, one for each of the `channels` or one for all."""
    if not per_channel:
        return quantisation(dtype)
    return weight((channels,), "float32"), weight((channels,), dtype, limit=1)


def is_per_channel(node: OnnxNode, index: int) -> bool:
    """True if the scale at `index` has more than one element."""
    operand = present(node, index)
    return operand is not None and operand.spec.elements > 1


def interleaved(operands: tuple[Operand, ...], dtype: str) -> list[Operand | None]:
    """Each operand followed by its scale and zero point; a condition has none."""
    found: list[Operand | None] = []
    for operand in operands:
        found.append(operand)
        if operand.spec.dtype == dtype:
            found += quantisation(dtype)
    return found


def spread(node: OnnxNode) -> tuple[Operand, ...]:
    """The tensors among `interleaved` inputs, without scales and zero points, those of the result included."""
    places: Sequence[int]
    if node.op_type == "QLinearConcat":
        places = range(2, len(node.inputs), 3)
    elif node.op_type == "QLinearWhere":
        places = (0, 1, 4)
    else:
        places = range(0, len(node.inputs) - 2, 3)
    return tuple(operand for place in places if (operand := present(node, place)) is not None)


def nhwc(shape: Shape) -> Shape:
    """A channels-first shape with its channels last."""
    return (shape[0], *shape[2:], shape[1])


def nchw(shape: Shape) -> Shape:
    """A channels-last shape with its channels second."""
    return (shape[0], shape[-1], *shape[1:-1])
