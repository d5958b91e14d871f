"""Models of a sequence of different ONNX nodes, and the kernels that the runtime makes of them."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opmark.bench.backends._onnx.model import ModelBuilder, Stacked, element_type
from opmark.bench.worker.backend import Piece
from opmark.core.errors import MeasurementError
from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec


def sequence(nodes: Sequence[OnnxNode]) -> Stacked:
    """Build one model of `nodes`, each fed by the previous one; the optimiser sees all constants.

    Raises `MeasurementError` if a node has no input for the output of the previous one.
    """
    builder = _Sequence(nodes[0])
    previous: tuple[str, TensorSpec] | None = None
    for place, node in enumerate(nodes):
        fed = {} if previous is None else {_input_like(node, previous[1]): previous[0]}
        builder.turn_to(place, node)
        output = builder.add(place, fed, own_activations=True, last=place == len(nodes) - 1)[0]
        first = node.outputs[0]
        assert first is not None
        previous = (output, first)
    return builder.model({"": min(node.opset for node in nodes), "com.microsoft": 1}, copies=1)


def pieces(nodes: Sequence[OnnxNode], *, threads: int) -> tuple[Piece, ...]:
    """The kernels of ONNX Runtime's optimised graph of the sequence, each with the indices of the nodes it covers."""
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


class _Sequence(ModelBuilder):
    """A builder of different nodes; the names of constants contain the index of their node."""

    _place = 0

    def turn_to(self, place: int, node: OnnxNode) -> None:
        """Make `node` the next node to add."""
        self._place, self._node = place, node

    def _initializer(self, name: str, operand: Operand) -> str:
        from onnx import TensorProto

        name = f"{name}_of_{self._place}"
        values = np.ascontiguousarray(self._values(operand))
        self.initializers.append(
            TensorProto(
                name=name,
                data_type=element_type(operand.spec.dtype),
                dims=operand.spec.shape,
                raw_data=values.tobytes(),
            )
        )
        return name


def _input_like(node: OnnxNode, made: TensorSpec) -> int:
    for index, operand in enumerate(node.inputs):
        if operand is not None and not operand.constant and operand.spec == made:
            return index
    raise MeasurementError(f"{node.op_type} has no input of shape {made.shape}")
