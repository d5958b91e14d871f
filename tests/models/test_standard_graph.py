"""Kernels that ONNX Runtime's own provider fused come apart into standard operators; nothing else changes."""

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds import KINDS, work_of
from opmark.models.resolve import graph_of
from opmark.models.standard_graph import as_standard, fuses_silently

IMAGE = (1, 16, 8, 8)


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


def conv(**parameters: object) -> Kernel:
    sizes = {"batch": 1, "channels_in": 16, "channels_out": 16, "size": (8, 8), "kernel": (3, 3), "stride": (1, 1)}
    return kernel("conv", **sizes, pads=(1, 1, 1, 1), dilation=(1, 1), groups=1, **parameters)


def node(name: str, found: Kernel, *inputs: str) -> Node:
    return Node(name=name, kernel=found, work=work_of(found), inputs=inputs, outputs=(name,))


def reorder(op: str) -> Kernel:
    return kernel("movement", op=op, shapes=(IMAGE,), arguments=(0,) if op == "reorder-input" else (16, 0), block=16)


def graph(*nodes: Node, output: str) -> Graph:
    tensors = {name: TensorSpec(IMAGE) for name in ("x", *(one.name for one in nodes))}
    weights = {"w": TensorSpec((16, 16, 3, 3)), "b": TensorSpec((16,))}
    return Graph(
        name="net", language="onnx", nodes=nodes, tensors=tensors, inputs=("x",), outputs=(output,), weights=weights
    )


def test_a_blocked_convolution_with_a_sum_and_an_activation_becomes_three_operators() -> None:
    found = as_standard(
        graph(
            node("in", reorder("reorder-input"), "x"),
            node("first", conv(block=16), "in", "w", "b"),
            node("second", conv(block=16, activation="relu", residual=True), "first", "w", "b", "in"),
            node("out", reorder("reorder-output"), "second"),
            output="out",
        )
    )
    kinds = [(one.kernel.kind, one.kernel.params.get("op", "")) for one in found.nodes]
    assert kinds == [("conv", ""), ("conv", ""), ("elementwise", "add"), ("elementwise", "relu")]
    first, second, added, activated = found.nodes
    assert first.kernel == second.kernel == conv()
    assert first.inputs == ("x", "w", "b")
    assert second.inputs == ("first", "w", "b")
    assert added.inputs == (second.outputs[0], "x")
    assert activated.inputs == added.outputs
    assert activated.outputs == found.outputs == ("second",)
    assert set(found.tensors) == {"x", *(name for one in found.nodes for name in one.outputs)}
    assert all(one.work == work_of(one.kernel) for one in found.nodes)


def test_standard_operators_stay_as_they_are() -> None:
    plain = graph(
        node("c", conv(), "x", "w"), node("r", kernel("elementwise", op="relu", shapes=(IMAGE,)), "c"), output="r"
    )
    assert as_standard(plain) == plain


def test_graphs_for_openvino_hold_standard_operators() -> None:
    assert fuses_silently("openvino-cpu-t1")
    assert not fuses_silently("onnxruntime-cpu-t1")
    own, standard = (graph_of("light-squeezenet", name) for name in ("onnxruntime-cpu-t1", "openvino-cpu-t1"))
    kernels = [one.kernel for one in standard.nodes]
    assert all(not one.params.get("block") and not one.params.get("activation") for one in kernels)
    assert sum(one.kind == "conv" for one in kernels) == sum(one.kernel.kind == "conv" for one in own.nodes)
    assert sum(one.params.get("op") == "relu" for one in kernels) >= 26
    assert standard.target == "openvino-cpu-t1"
    assert standard.id == graph_of("light-squeezenet", "openvino-cpu-t1").id != own.id
