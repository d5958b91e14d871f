"""The compact JSON form of a captured graph."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from opmark.core.canonical import canonical_json, plain
from opmark.core.errors import ContentError
from opmark.core.files import write_sealed
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.core.reading import read_json
from opmark.core.schema import check_schema, convert

SCHEMA = 1
_WORK = ("flops", "read_bytes", "written_bytes", "weight_bytes")


def save(graph: Graph, path: Path) -> None:
    """Write `graph` to `path`."""
    text = json.dumps(encode(graph), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write_sealed(path, text + "\n")


def load(path: Path) -> Graph:
    """The graph that `save` wrote. Raises `ContentError` naming the file."""
    return decode(read_json(path, sealed=True), path)


def encode(graph: Graph) -> dict[str, Any]:
    """`graph` as plain values, each distinct kernel once."""
    numbers: dict[str, int] = {}
    kernels: list[Any] = []
    nodes: list[Any] = []
    for node in graph.nodes:
        entry = [node.kernel.kind, node.kernel.params, [getattr(node.work, field) for field in _WORK]]
        key = canonical_json(entry)
        if key not in numbers:
            numbers[key] = len(kernels)
            kernels.append(entry)
        nodes.append(
            [
                node.name,
                numbers[key],
                node.inputs,
                node.outputs,
                node.origins,
                node.scope,
                node.phase,
                int(node.free),
            ]
        )
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "name": graph.name,
        "language": graph.language,
        "target": graph.target,
        "mapping": graph.mapping,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "tensors": {name: [spec.dtype, *spec.shape] for name, spec in graph.tensors.items()},
        "weights": {name: [spec.dtype, *spec.shape] for name, spec in graph.weights.items()},
        "kernels": kernels,
        "nodes": nodes,
    }
    if graph.python_calls is not None:
        content["python_calls"] = graph.python_calls
    return {key: plain(value) for key, value in content.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """A stored graph as it is written: each tensor is its type and sizes, each kernel its kind, parameters and work.

    A node is its name, the number of its kernel, inputs, outputs, origins, scope, phase, and whether it is free.
    """

    name: str
    language: str
    target: str
    mapping: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: dict[str, tuple[str | int, ...]]
    weights: dict[str, tuple[str | int, ...]]
    kernels: list[tuple[str, dict[str, Any], tuple[int, int, int, int]]]
    nodes: list[tuple[str, int, tuple[str, ...], tuple[str, ...], tuple[str, ...], str, str, Literal[0, 1]]]
    python_calls: int | None = None


_FIELDS = frozenset(item.name for item in fields(_Content))


def decode(content: Any, path: Path) -> Graph:
    """The graph that `encode` made. Raises `ContentError` naming `path`, where it was read."""
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    check_schema(content, SCHEMA, path)
    try:
        stored = convert({key: content[key] for key in _FIELDS & content.keys()}, _Content, where=str(path))
        kernels = [
            (Kernel.of(kind, params), Work(**dict(zip(_WORK, work, strict=True))))
            for kind, params, work in stored.kernels
        ]
        return Graph(
            name=stored.name,
            language=stored.language,
            target=stored.target,
            mapping=stored.mapping,
            inputs=stored.inputs,
            outputs=stored.outputs,
            tensors={name: _spec(item) for name, item in stored.tensors.items()},
            weights={name: _spec(item) for name, item in stored.weights.items()},
            nodes=tuple(_node(item, kernels) for item in stored.nodes),
            python_calls=stored.python_calls,
        )
    except ContentError as error:
        raise ContentError(f"not a stored graph: {error.message}", where=str(path), hint=error.hint) from error
    except (IndexError, TypeError, ValueError) as error:
        raise ContentError(f"not a stored graph: {error}", where=str(path)) from error


def _spec(item: tuple[Any, ...]) -> TensorSpec:
    return TensorSpec(item[1:], item[0])


def _node(item: tuple[Any, ...], kernels: list[tuple[Kernel, Work]]) -> Node:
    name, number, inputs, outputs, origins, scope, phase, free = item
    kernel, work = kernels[number]
    return Node(
        name=name,
        kernel=kernel,
        work=work,
        inputs=inputs,
        outputs=outputs,
        origins=origins,
        scope=scope,
        phase=phase,
        free=bool(free),
    )
