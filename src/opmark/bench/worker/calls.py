"""Kernels as calls in the graph language of a runtime, and the memory of such a call."""

from collections.abc import Iterator

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import kind_of, work_of


def call_in(language: str, kernel: Kernel) -> OnnxNode | AtenCall | None:
    """`kernel` as a call in `onnx` or `aten`; None if the language has no such call.

    Raises `ContentError` if the parameters do not fit together.
    """
    kind = kind_of(kernel)
    parameters = kind.parse(kernel)
    return kind.to_onnx(parameters) if language == "onnx" else kind.to_aten(parameters)


def allocated_bytes(kernel: Kernel, language: str) -> int:
    """The bytes of all inputs, constants and outputs of one call, at least the bytes that the call moves.

    A kernel that reads a few rows of a large table allocates more than it moves.
    """
    return max(work_of(kernel).moved_bytes, sum(spec.size_bytes for spec in _tensors(call_in(language, kernel))))


def _tensors(call: OnnxNode | AtenCall | None) -> Iterator[TensorSpec]:
    if isinstance(call, OnnxNode):
        yield from (operand.spec for operand in call.inputs if operand is not None)
        yield from (spec for spec in call.outputs if spec is not None)
    elif call is not None:
        yield from (*call.tensors, *call.outputs)
