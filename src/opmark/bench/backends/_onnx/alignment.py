"""Gives the nodes of an optimised graph the names that an earlier capture gave them.

ONNX Runtime numbers the reorders and tensors that it inserts in an order that differs from process to process. The
graph itself is the same.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opmark.bench.worker.divided import NamedKernel
from opmark.core.errors import MeasurementError

if TYPE_CHECKING:
    import onnx

_NUMBER = re.compile(r"(_token)?_\d+$")
# Constants get names of their own: a capture may use the same ones for tensors.
_CONSTANT = "constant/"


def align(graph: "onnx.GraphProto", kernels: Sequence[NamedKernel]) -> dict[str, str]:
    """Rename and reorder the nodes of `graph` as `kernels`; returns the new name of every tensor and constant.

    Raises `MeasurementError` if the graph has other kernels.
    """
    constants = {item.name for item in graph.initializer}
    names = {name: f"{_CONSTANT}{name}" for name in constants}
    names |= {item.name: item.name for item in graph.input if item.name not in constants}
    readers: dict[tuple[str, ...], list[int]] = {}
    for number, kernel in enumerate(kernels):
        readers.setdefault(kernel.inputs, []).append(number)
    placed: dict[int, onnx.NodeProto] = {}
    for node in graph.node:
        inputs = tuple(names[name] for name in node.input if name and name not in constants)
        outputs = [name for name in node.output if name]
        own = node.name or outputs[0]
        free = [n for n in readers.get(inputs, ()) if n not in placed and len(kernels[n].outputs) == len(outputs)]
        like = [n for n in free if _stem(kernels[n].name) == _stem(own)]
        number = next((n for n in free if kernels[n].name == own), like[0] if like else -1)
        if number < 0:
            raise MeasurementError(f"ONNX Runtime runs {own!r} here, which the captured graph does not have")
        placed[number] = node
        names |= dict(zip(outputs, kernels[number].outputs, strict=True))
    if len(placed) < len(kernels):
        missing = next(kernel.name for number, kernel in enumerate(kernels) if number not in placed)
        raise MeasurementError(f"ONNX Runtime does not run {missing!r} here, which the captured graph has")
    _rename(graph, [placed[number] for number in range(len(kernels))], kernels, names)
    return names


def _rename(
    graph: "onnx.GraphProto",
    nodes: Sequence["onnx.NodeProto"],
    kernels: Sequence[NamedKernel],
    names: dict[str, str],
) -> None:
    copies = []
    for node, kernel in zip(nodes, kernels, strict=True):
        copy = type(node)()
        copy.CopyFrom(node)
        copy.name = kernel.name
        copy.input[:] = [names.get(name, name) for name in node.input]
        copy.output[:] = [names.get(name, name) for name in node.output]
        copies.append(copy)
    del graph.node[:]
    graph.node.extend(copies)
    for item in (*graph.initializer, *graph.output):
        item.name = names.get(item.name, item.name)


def _stem(name: str) -> str:
    return _NUMBER.sub("", name)
