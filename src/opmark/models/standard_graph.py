"""A graph of ONNX Runtime's own provider in standard operators, for a runtime that fuses by rules of its own.

The provider of the processor fuses activations and sums into convolutions and products, and keeps channels in blocks.
Another execution provider gets standard operators and cuts them itself. So fused kernels come apart here; blocks and
reorders go. Tests of fusion say which kernels OpenVINO makes of the operators (`predictors.inputs.fused_graph`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from opmark.core.hardware.target import parse_target_name
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS, kind_of, work_of

_OPENVINO = "openvino-cpu"

_REORDERS = frozenset({"reorder-input", "reorder-output"})
# What ONNX Runtime fuses into convolutions and products, and ONNX has as an operator.
_ACTIVATIONS = frozenset({"relu", "clip", "sigmoid", "tanh", "leaky-relu", "hard-sigmoid", "gelu", "hard-swish", "elu"})
# The parameters of a fused or blocked kernel, and their values in a standard one.
_STANDARD = {"block": 0, "activation": "", "residual": False}


def fuses_silently(target_name: str) -> bool:
    """True if a target's graphs hold standard operators, because its runtime does not tell the kernels that it runs."""
    return parse_target_name(target_name)[0] == _OPENVINO


def as_standard(graph: Graph) -> Graph:
    """`graph` as captured from ONNX Runtime's provider of the processor, in standard operators and plain layouts.

    Layers that only that provider has (a norm with its sum, attention) stay as they are.
    """
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    source: dict[str, str] = {}
    for node in graph.nodes:
        given = replace(node, inputs=tuple(source.get(name, name) for name in node.inputs))
        if node.kernel.kind == "movement" and node.kernel.params["op"] in _REORDERS:
            source[node.outputs[0]] = given.inputs[0]
            continue
        for part in _apart(given):
            nodes.append(part)
            # the parts of a kernel have results of the shape of its own
            tensors |= {name: tensors[node.outputs[0]] for name in part.outputs if name not in tensors}
    known = {*graph.inputs, *(name for node in nodes for name in node.outputs)}
    return replace(
        graph,
        nodes=tuple(nodes),
        tensors={name: spec for name, spec in tensors.items() if name in known},
        outputs=tuple(source.get(name, name) for name in graph.outputs),
    )


def _apart(node: Node) -> Iterator[Node]:
    """The standard operators that one kernel computes, in order; the last has the kernel's own results."""
    params = node.kernel.params
    fused = {name: value for name, value in _STANDARD.items() if params.get(name, value) != value}
    if not fused or ("activation" in fused and params["activation"] not in _ACTIVATIONS):
        yield node
        return
    kind = kind_of(node.kernel)
    p: Any = kind.parse(node.kernel)
    # the sum comes before the activation, and its other operand is the last input
    operators = (*(["add"] if "residual" in fused else []), *([p.activation] if "activation" in fused else []))
    inputs, added = (node.inputs[:-1], node.inputs[-1:]) if "residual" in fused else (node.inputs, ())
    results = (*(f"{node.outputs[0]}/{op}" for op in operators), node.outputs[0])
    yield _part(node, kind.kernel(replace(p, **fused)), inputs, (results[0], *node.outputs[1:]))
    for op, last, result in zip(operators, results, results[1:], strict=False):
        operands = (last, *added) if op == "add" else (last,)
        yield _part(node, _elementwise(op, p, len(operands)), operands, (result,))


def _elementwise(op: str, p: Any, operands: int) -> Kernel:
    """An operator on results of the kernel with the parameters `p`."""
    kind = KINDS.load("elementwise")
    shape = p.output_shape if hasattr(p, "output_shape") else (p.m, p.n)
    return kind.kernel(kind.parameters(op=op, shapes=(shape,) * operands, dtype=p.dtype))


def _part(node: Node, kernel: Kernel, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Node:
    name = node.name if outputs[0] in node.outputs else outputs[0]
    return replace(node, name=name, kernel=kernel, work=work_of(kernel), inputs=inputs, outputs=outputs)
