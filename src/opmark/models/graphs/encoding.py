"""A captured graph as a compact JSON file."""

import json
from pathlib import Path
from typing import Any

from opmark.core.canonical import canonical_json, plain
from opmark.core.errors import ContentError
from opmark.core.files import read_json, write_text
from opmark.core.graph import Graph, Node
from opmark.core.kernel import Kernel
from opmark.core.schema import check_schema
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work

SCHEMA = 1
_WORK = ("flops", "read_bytes", "written_bytes", "weight_bytes")


def save(graph: Graph, path: Path) -> None:
    """Write `graph` to `path`."""
    text = json.dumps(encode(graph), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def load(path: Path) -> Graph:
    """The graph that `save` wrote. Raises `ContentError` naming the file."""
    return decode(read_json(path), path)


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
    return {key: plain(value) for key, value in content.items()}


def decode(content: Any, path: Path) -> Graph:
    """The graph that `encode` made. Raises `ContentError` naming `path`, where it was read."""
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    check_schema(content, SCHEMA, path)
    try:
        kernels = [
            (Kernel.of(kind, params), Work(**dict(zip(_WORK, work, strict=True))))
            for kind, params, work in content["kernels"]
        ]
        return Graph(
            name=content["name"],
            language=content["language"],
            target=content["target"],
            mapping=content["mapping"],
            inputs=tuple(content["inputs"]),
            outputs=tuple(content["outputs"]),
            tensors={name: _spec(item) for name, item in content["tensors"].items()},
            weights={name: _spec(item) for name, item in content["weights"].items()},
            nodes=tuple(_node(item, kernels) for item in content["nodes"]),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ContentError(f"not a stored graph: {error}", where=str(path)) from error


def _spec(item: list[Any]) -> TensorSpec:
    return TensorSpec(tuple(item[1:]), item[0])


def _node(item: list[Any], kernels: list[tuple[Kernel, Work]]) -> Node:
    name, number, inputs, outputs, origins, scope, phase, free = item
    kernel, work = kernels[number]
    return Node(
        name=name,
        kernel=kernel,
        work=work,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        origins=tuple(origins),
        scope=scope,
        phase=phase,
        free=bool(free),
    )
