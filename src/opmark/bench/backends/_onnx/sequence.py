"""Different ONNX nodes one after the other as one model, and which of them the runtime made into one kernel."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opmark.bench.backends._onnx.model import Stacked, _Builder, _element_type
from opmark.bench.worker.backend import Piece
from opmark.core.call import OnnxNode, Operand
from opmark.core.errors import MeasurementError
from opmark.core.tensor import TensorSpec

_OPSETS = {"com.microsoft": 1}
_IR_VERSION = 10


def sequence(nodes: Sequence[OnnxNode]) -> Stacked:
    """`nodes` in one model, each fed by the one before; everything is inside the file, for the optimiser to see.

    Raises `MeasurementError` where one takes nothing like what the one before makes.
    """
    from onnx import helper

    builder = _Sequence(nodes[0])
    previous: tuple[str, TensorSpec] | None = None
    for place, node in enumerate(nodes):
        fed = {} if previous is None else {_input_like(node, previous[1]): previous[0]}
        builder.turn_to(place, node)
        output = builder.add(place, fed, own_activations=True, last=place == len(nodes) - 1)[0]
        first = node.outputs[0]
        assert first is not None
        previous = (output, first)
    graph = helper.make_graph(
        builder.nodes, "sequence", builder.graph_inputs, builder.graph_outputs, initializer=builder.initializers
    )
    domains = {"": min(node.opset for node in nodes), **_OPSETS}
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in domains.items()],
        ir_version=_IR_VERSION,
    )
    return Stacked(
        model=model.SerializeToString(), constants={}, feeds=builder.feeds, outputs=builder.outputs, copies=1
    )


def pieces(nodes: Sequence[OnnxNode], *, threads: int) -> tuple[Piece, ...]:
    """The kernels of ONNX Runtime's own optimised graph of the sequence, each with the places of what it covers."""
    from opmark.models.capture.onnx_origins import Origins
    from opmark.models.capture.onnx_session import optimised
    from opmark.models.onnx_file import read

    with tempfile.TemporaryDirectory(prefix="opmark-") as folder:
        path = Path(folder) / "sequence.onnx"
        path.write_bytes(sequence(nodes).model)
        file = read(path, {})
        graph = optimised(file, threads=threads).graph
        origins = Origins(file.model.graph, graph)
    found = []
    for index, node in enumerate(graph.node):
        covered, _ = origins.of(index)
        places = sorted({int(name.rpartition(":copy")[2]) for name in covered if ":copy" in name})
        found.append(Piece(name=node.op_type, covers=tuple(places)))
    return tuple(found)


class _Sequence(_Builder):
    """A builder that goes from node to node; names of constants tell them apart."""

    _place = 0

    def turn_to(self, place: int, node: OnnxNode) -> None:
        """What is added next."""
        self._place, self._node = place, node

    def _initializer(self, name: str, operand: Operand) -> str:
        from onnx import TensorProto

        name = f"{name}_of_{self._place}"
        values = np.ascontiguousarray(self._values(operand))
        self.initializers.append(
            TensorProto(
                name=name,
                data_type=_element_type(operand.spec.dtype),
                dims=operand.spec.shape,
                raw_data=values.tobytes(),
            )
        )
        return name


def _input_like(node: OnnxNode, made: TensorSpec) -> int:
    for index, operand in enumerate(node.inputs):
        if operand is not None and not operand.constant and operand.spec == made:
            return index
    raise MeasurementError(f"{node.op_type} takes nothing of shape {made.shape}")
