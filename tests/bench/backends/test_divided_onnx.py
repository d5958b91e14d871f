"""Nodes of an optimised graph get the names of an earlier capture; another graph is refused."""

import pytest
from onnx import TensorProto, helper

from opmark.bench.backends._onnx.alignment import align
from opmark.bench.worker.divided import NamedKernel
from opmark.core.errors import MeasurementError

# A product of which two reorders make other layouts; the numbers of the reorders may change places.
CAPTURED = (
    NamedKernel(name="mul", inputs=("x",), outputs=("reorder_token_1",)),
    NamedKernel(name="gate", inputs=("reorder_token_1",), outputs=("reorder_token_2",)),
    NamedKernel(name="ReorderOutput", inputs=("reorder_token_1",), outputs=("y",)),
    NamedKernel(name="ReorderOutput_token_7", inputs=("reorder_token_2",), outputs=("z",)),
)


def graph(first: str = "ReorderOutput_token_7", second: str = "ReorderOutput"):  # type: ignore[no-untyped-def]
    nodes = [
        helper.make_node("Mul", ["x", "reorder_token_1"], ["t"], name="mul"),
        helper.make_node("ReorderOutput", ["t"], ["y"], name=first),
        helper.make_node("Sigmoid", ["t"], ["s"], name="gate"),
        helper.make_node("ReorderOutput", ["s"], ["z"], name=second),
    ]
    value = helper.make_tensor_value_info
    constant = helper.make_tensor("reorder_token_1", TensorProto.FLOAT, [1], [2.0])
    ends = [value(name, TensorProto.FLOAT, [1]) for name in "yz"]
    return helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [1])], ends, initializer=[constant])


def test_names_and_order_become_those_of_the_capture() -> None:
    given = graph()
    names = align(given, CAPTURED)
    assert names["t"] == "reorder_token_1"
    assert names["reorder_token_1"] == "constant/reorder_token_1"
    assert [node.name for node in given.node] == [kernel.name for kernel in CAPTURED]
    assert list(given.node[0].input) == ["x", "constant/reorder_token_1"]
    assert list(given.node[3].input) == ["reorder_token_2"]
    assert given.initializer[0].name == "constant/reorder_token_1"


def test_other_kernels_are_refused() -> None:
    with pytest.raises(MeasurementError, match="runs 'gate' here, which the captured graph does not have"):
        align(graph(), (CAPTURED[0], CAPTURED[2]))
    more = (*CAPTURED, NamedKernel(name="extra", inputs=("z",), outputs=("w",)))
    with pytest.raises(MeasurementError, match="does not run 'extra' here"):
        align(graph(), more)
