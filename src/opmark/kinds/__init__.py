"""Kernel families, one file each; `KINDS` finds them by name."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.kind import Kind
from opmark.core.kernels.work import Work
from opmark.core.registry import Registry

KINDS: Registry[Kind[Any]] = Registry("opmark.kinds", "KIND", "kind")

# The family that takes every operator; it is asked last.
GENERIC = "bytes-moved"


def kind_of(kernel: Kernel) -> Kind[Any]:
    """The family of `kernel`. Raises `UnknownNameError`."""
    return KINDS.load(kernel.kind)


def work_of(kernel: Kernel) -> Work:
    """FLOPs and bytes of one call of `kernel`. Raises `ContentError` for wrong parameters."""
    kind = kind_of(kernel)
    return kind.work(kind.parse(kernel))


def of_onnx(node: OnnxNode) -> tuple[Kernel, Work]:
    """The kernel of `node`; `bytes-moved` where no other family covers it."""
    name = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
    return _first_kernel(_by_operator("onnx_ops").get(name, ()), lambda kind: kind.from_onnx(node))


def of_aten(call: AtenCall) -> tuple[Kernel, Work]:
    """The kernel of `call`; `bytes-moved` where no other family covers it."""
    name = call.op.partition(".")[0]
    return _first_kernel(_by_operator("aten_ops").get(name, ()), lambda kind: kind.from_aten(call))


def _first_kernel(kinds: tuple[Kind[Any], ...], read: Callable[[Kind[Any]], Any]) -> tuple[Kernel, Work]:
    """The kernel of the first kind that can `read` it, the generic one last."""
    for kind in kinds:
        parameters = read(kind)
        if parameters is not None:
            return kind.kernel(parameters), kind.work(parameters)
    generic = KINDS.load(GENERIC)
    parameters = read(generic)
    return generic.kernel(parameters), generic.work(parameters)


@cache
def _by_operator(attribute: str) -> Mapping[str, tuple[Kind[Any], ...]]:
    """The families that may cover an operator, sorted by name."""
    found: dict[str, tuple[Kind[Any], ...]] = {}
    for kind in KINDS:
        for operator in getattr(kind, attribute):
            found[operator] = (*found.get(operator, ()), kind)
    return found
