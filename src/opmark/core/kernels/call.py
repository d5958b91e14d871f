"""Kernels in the two graph languages, as plain values: an ONNX node and an ATen call."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opmark.core.kernels.tensor import TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One input of an ONNX node.

    `value` holds the elements of a small constant that changes the computation. Whole-number inputs are filled with 0
    to `limit` - 1 (an index must exist), or with any small numbers.
    """

    spec: TensorSpec
    constant: bool = False
    value: tuple[Any, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """One node of an ONNX graph; omitted optional inputs and outputs are `None`.

    `block` is the width of the channel-blocked layout its tensors are stored in, 0 for the plain one.
    It is no part of the file format.
    """

    op_type: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[TensorSpec | None, ...]
    domain: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 20
    block: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenCall:
    """One `torch.ops.aten` call: `op` is `add.Tensor`; tensors among the arguments are `TensorSpec`s.

    A list argument is a tuple; element types, layouts and devices are strings (`"float32"`).
    `strides[i]` belongs to the i-th tensor in argument order and is `None` where that is contiguous.
    `parameters` are the indices, in argument order, of tensors that are weights.
    """

    op: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    outputs: tuple[TensorSpec, ...] = ()
    strides: tuple[tuple[int, ...] | None, ...] = ()
    parameters: tuple[int, ...] = ()

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Every tensor among the arguments, in order."""
        return tuple(_tensors((self.arguments, tuple(self.keywords.values()))))


def _tensors(value: Any) -> Iterator[TensorSpec]:
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
