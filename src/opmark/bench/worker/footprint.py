"""How much memory one copy of a kernel takes: more than it moves, where it reads a few rows of a large table."""

from collections.abc import Iterator

from opmark.core.kernel import Kernel
from opmark.core.tensor import TensorSpec
from opmark.kinds import kind_of, work_of


def allocated_bytes(kernel: Kernel, language: str) -> int:
    """Bytes of all inputs, constants and outputs of one call in `onnx` or `aten`, at least what the call moves."""
    return max(work_of(kernel).moved_bytes, sum(spec.size_bytes for spec in _tensors(kernel, language)))


def _tensors(kernel: Kernel, language: str) -> Iterator[TensorSpec]:
    kind = kind_of(kernel)
    parameters = kind.parse(kernel)
    if language == "onnx":
        node = kind.to_onnx(parameters)
        if node is not None:
            yield from (operand.spec for operand in node.inputs if operand is not None)
            yield from (spec for spec in node.outputs if spec is not None)
    else:
        call = kind.to_aten(parameters)
        if call is not None:
            yield from (*call.tensors, *call.outputs)
