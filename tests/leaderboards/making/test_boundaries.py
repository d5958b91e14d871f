"""Boundary costs of cuts inside a blocked region, and tensors that are views of others."""

from dataclasses import dataclass

import numpy as np

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.leaderboards.making.boundaries import blocked_tensors, boundary_of, unit_layout_ns
from opmark.leaderboards.making.units import aliases
from opmark.leaderboards.problem.fields import Tensor

SPEC = TensorSpec((1, 32, 8, 8))


def node(name: str, source: str, *, free: bool = False, **params: object) -> Node:
    work = Work(flops=1, read_bytes=1, written_bytes=1)
    kernel = Kernel.of("conv", params)
    return Node(name=name, kernel=kernel, work=work, inputs=(source,), outputs=(name,), free=free)


def network(*nodes: Node) -> Graph:
    tensors = {"in": SPEC} | {item.outputs[0]: SPEC for item in nodes}
    return Graph(name="net", language="onnx", nodes=nodes, tensors=tensors, inputs=("in",), outputs=(nodes[-1].name,))


BLOCKED = network(
    node("one", "in", block=16),
    node("two", "one", op="add"),
    node("three", "two", block=16),
    node("out", "three", op="reorder-output", block=16),
    node("four", "out", op="relu"),
)


@dataclass
class Reorders:
    """Out of the layout costs 100 ns, into it 50."""

    asked: tuple[Kernel, ...] = ()

    def kernels(self, kernels):
        self.asked = tuple(kernels)

        class Found:
            hot_ns = np.array([100.0 if kernel.params["op"] == "reorder-output" else 50.0 for kernel in kernels])

        return Found()


def test_a_blocked_layout_lasts_until_it_is_reordered() -> None:
    assert blocked_tensors(BLOCKED) == {"one": 16, "two": 16, "three": 16}


def test_a_cut_inside_a_blocked_region_pays_a_reorder_and_one_outside_does_not() -> None:
    costs = Reorders()
    groups, names = [(0,), (1, 2), (3,), (4,)], ["a", "b", "c", "d"]
    found = unit_layout_ns(BLOCKED, groups, names, costs)
    assert found == {("a", "b"): 75.0, ("b", "c"): 75.0}
    assert {kernel.params["shapes"] for kernel in costs.asked} == {((1, 32, 8, 8),)}
    tensor = Tensor(name="one", size_bytes=8, producer="a", consumers=("b", "d"))
    assert boundary_of(tensor, {"core": found, "gpu": {}}) == {"core": 75}
    assert boundary_of(Tensor(name="out", size_bytes=8, producer="c", consumers=("d",)), {"core": found}) == {}


def test_costs_that_know_no_single_kernels_and_plain_graphs_have_no_layout_to_pay() -> None:
    assert unit_layout_ns(BLOCKED, [(0,), (1, 2, 3, 4)], ["a", "b"], object()) == {}
    plain = network(node("one", "in"), node("two", "one"))
    assert unit_layout_ns(plain, [(0,), (1,)], ["a", "b"], Reorders()) == {}


def test_a_view_of_a_whole_tensor_is_that_tensor() -> None:
    graph = network(node("one", "in"), node("seen", "one", free=True), node("again", "seen", free=True))
    assert aliases(graph) == {"seen": "one", "again": "one"}
