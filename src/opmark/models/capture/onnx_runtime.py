"""Captures the kernels that ONNX Runtime runs for an ONNX file: the nodes of its optimised graph."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import GENERIC, of_onnx
from opmark.models.capture.onnx_origins import Origins
from opmark.models.capture.onnx_session import block_width, optimised, tensor_specs
from opmark.models.onnx_file import constant_names, read

if TYPE_CHECKING:
    import onnx

_NCHWC = "com.microsoft.nchwc"
# Constants up to this size may be shapes, axes, scales or exponents, whose values change what runs.
_MOST_KNOWN_ELEMENTS = 64
_NOTHING: Mapping[str, int] = MappingProxyType({})


def capture(path: Path, *, threads: int = 1, dimensions: Mapping[str, int] = _NOTHING, name: str = "") -> Graph:
    """The kernels that ONNX Runtime's CPU provider runs on this machine for the model in `path`.

    `dimensions` gives the model's open dimensions. Raises `ContentError` naming the file, and `UsageError` for a
    dimension that the model does not have.
    """
    file = read(path, dimensions)
    model = optimised(file, threads=threads)
    specs = tensor_specs(model, where=str(path))
    constants = _constants(model.graph, str(path))
    nodes = onnx_nodes(model, specs, constants)
    kernels = _kernels(model.graph, nodes, Origins(file.model.graph, model.graph))
    read_names = {item for node in kernels for item in node.inputs}
    outputs = tuple(item.name for item in model.graph.output)
    weights = {item: operand.spec for item, operand in constants.items() if item in read_names or item in outputs}
    # Old files list their weights among the inputs, folded ones included.
    given = constant_names(file.model.graph)
    inputs = tuple(item.name for item in model.graph.input if item.name not in given)
    made = {item for node in kernels for item in node.outputs}
    return Graph(
        name=name or path.stem,
        language="onnx",
        nodes=kernels,
        tensors={item: spec for item, spec in specs.items() if item in made or item in inputs},
        inputs=inputs,
        outputs=outputs,
        weights=weights,
        target=f"onnxruntime-cpu-t{threads}",
    )


def onnx_nodes(
    model: "onnx.ModelProto", specs: Mapping[str, TensorSpec], constants: Mapping[str, Operand]
) -> tuple[OnnxNode, ...]:
    """Every node of an optimised model as a value, in order."""
    opsets = {item.domain: item.version for item in model.opset_import}
    found = []
    for node in model.graph.node:
        inputs = (
            None if not name else constants[name] if name in constants else Operand(spec=specs[name])
            for name in node.input
        )
        found.append(
            OnnxNode(
                op_type=node.op_type,
                domain="" if node.domain == "ai.onnx" else node.domain,
                inputs=tuple(inputs),
                outputs=tuple(specs[name] if name else None for name in node.output),
                attributes={item.name: _attribute(item) for item in node.attribute},
                opset=opsets.get(node.domain, 1),
                block=block_width() if node.domain == _NCHWC else 0,
            )
        )
    return tuple(found)


def _kernels(graph: "onnx.GraphProto", nodes: tuple[OnnxNode, ...], origins: Origins) -> tuple[Node, ...]:
    found = []
    scopes: dict[str, str] = {}
    for index, (proto, node) in enumerate(zip(graph.node, nodes, strict=True)):
        kernel, work = of_onnx(node)
        covered, scope = origins.of(index)
        # An inserted node belongs to the module that made its input.
        scope = scope or next((scopes[name] for name in proto.input if name in scopes), "")
        scopes |= dict.fromkeys(proto.output, scope)
        if kernel.kind == GENERIC:
            # The parameters no longer name the operator.
            covered = (f"{node.domain}:{node.op_type}" if node.domain else node.op_type, *covered)
        found.append(
            Node(
                name=proto.name or proto.output[0],
                kernel=kernel,
                work=work,
                inputs=tuple(name for name in proto.input if name),
                outputs=tuple(name for name in proto.output if name),
                origins=covered,
                scope=scope,
            )
        )
    return tuple(found)


def _constants(graph: "onnx.GraphProto", where: str) -> dict[str, Operand]:
    import onnx

    from opmark.kinds._onnx.nodes import DTYPES

    found = {}
    for item in graph.initializer:
        if item.data_type not in DTYPES:
            kind = onnx.TensorProto.DataType.Name(item.data_type).lower()
            raise ContentError(f"weight {item.name!r} has element type {kind}, which OpMark does not know", where=where)
        spec = TensorSpec(tuple(item.dims), DTYPES[item.data_type])
        value = None
        if spec.elements <= _MOST_KNOWN_ELEMENTS and not item.external_data and spec.dtype != "bfloat16":
            value = tuple(onnx.numpy_helper.to_array(item).ravel().tolist())
        found[item.name] = Operand(spec=spec, constant=True, value=value)
    return found


def _attribute(item: "onnx.AttributeProto") -> Any:
    import onnx

    value = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if item.type in {onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS}:
        return tuple(value)
    if item.type == onnx.AttributeProto.STRINGS:
        return tuple(text.decode(errors="replace") for text in value)
    return value
