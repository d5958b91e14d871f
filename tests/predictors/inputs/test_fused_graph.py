"""Verdicts of the clock cut a graph into the kernels that a runtime makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.kernels.fusion import FUSED, NOT_FUSED, UNDECIDED, FusionMeasurement
from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.measurements.measurement import OK
from opmark.kinds import KINDS, work_of
from opmark.predictors.inputs.fused_graph import CUT, cut, operator_names, verdicts_of
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.training import train_on

IMAGE = (1, 16, 8, 8)


def kernel(kind: str, **parameters: object) -> Kernel:
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


def conv(side: int = 3, groups: int = 1) -> Kernel:
    pad = side // 2
    sizes = {"batch": 1, "channels_in": 16, "channels_out": 16, "size": (8, 8), "kernel": (side, side)}
    return kernel("conv", **sizes, stride=(1, 1), pads=(pad,) * 4, dilation=(1, 1), groups=groups)


def each(op: str, count: int = 1) -> Kernel:
    return kernel("elementwise", op=op, shapes=(IMAGE,) * count)


def graph(*nodes: tuple[str, Kernel, tuple[str, ...]], outputs: tuple[str, ...]) -> Graph:
    return Graph(
        name="net",
        language="onnx",
        nodes=tuple(
            Node(name=name, kernel=found, work=work_of(found), inputs=inputs, outputs=(name,), origins=(name,))
            for name, found, inputs in nodes
        ),
        tensors={name: TensorSpec(IMAGE) for name in ("x", *(name for name, _, _ in nodes))},
        inputs=("x",),
        outputs=outputs,
    )


RESIDUAL = graph(
    ("a", conv(), ("x",)),
    ("r", each("relu"), ("a",)),
    ("b", conv(1), ("r",)),
    ("s", conv(1), ("x",)),
    ("t", each("add", 2), ("b", "s")),
    ("q", each("relu"), ("t",)),
    outputs=("q",),
)


def test_an_operator_joins_the_kernel_that_makes_its_input_where_the_clock_says_so() -> None:
    found = cut(RESIDUAL, {"conv+relu": True, "conv+add": True, "conv-add+relu": True})
    assert [one.origins for one in found.graph.nodes] == [("a", "r"), ("b",), ("s", "t", "q")]
    assert [one.kernel.kind for one in found.graph.nodes] == ["conv"] * 3
    assert found.main == (0, 2, 3)
    assert found.graph.nodes[-1].inputs == ("x", "b")
    assert found.graph.outputs == ("q",)
    # cut once, it stays as it is
    assert found.graph.mapping == CUT
    assert cut(found.graph, {"conv+conv": True}).graph == found.graph


def test_the_pair_with_the_longest_tested_chain_decides() -> None:
    found = cut(RESIDUAL, {"conv+relu": False, "conv+add": True, "conv-add+relu": False, "add+relu": True})
    assert [one.origins for one in found.graph.nodes] == [("a",), ("r",), ("b",), ("s", "t"), ("q",)]
    found = cut(RESIDUAL, {"conv+add": True, "add+relu": True})
    assert found.graph.nodes[-1].origins == ("s", "t", "q")


def test_what_somebody_else_reads_is_computed_and_no_verdict_means_apart() -> None:
    shared = graph(
        ("a", conv(), ("x",)), ("r", each("relu"), ("a",)), ("m", each("mul", 2), ("a", "r")), outputs=("m",)
    )
    assert len(cut(shared, {"conv+relu": True}).graph.nodes) == 3
    kept = graph(("a", conv(), ("x",)), ("r", each("relu"), ("a",)), outputs=("a", "r"))
    assert len(cut(kept, {"conv+relu": True}).graph.nodes) == 2
    assert cut(RESIDUAL, {}).graph is RESIDUAL
    assert cut(RESIDUAL, {"fc+relu": True}).main == tuple(range(6))


def test_operators_go_by_the_names_of_the_tests() -> None:
    assert operator_names(conv()) == ("conv",)
    assert operator_names(conv(1)) == ("conv1x1", "conv")
    assert operator_names(conv(groups=16)) == ("dwconv",)
    assert operator_names(each("hard-swish")) == ("hswish",)
    assert operator_names(each("mul", 2)) == ("mul",)
    bias = kernel("elementwise", op="add", shapes=((8, 64), (64,)), constant=(1,))
    assert operator_names(bias) == ("bias", "add")
    scale = kernel("elementwise", op="mul", shapes=((8, 64), ()), constant=(1,))
    assert operator_names(scale) == ("scale",)
    assert operator_names(kernel("norm", op="layer", shape=(8, 64), axis=1)) == ("layernorm",)
    assert operator_names(kernel("softmax", shape=(8, 64), axis=1)) == ("softmax",)


def measured(pair: str, shape: str, verdict: str, saving: float) -> FusionMeasurement:
    first, _, second = pair.partition("+")
    return FusionMeasurement(
        target="openvino-cpu-t1", pair=pair, first=first, second=second, shape=shape, status=OK, black_box=verdict,
        saving=saving,
    )  # fmt: skip


def test_the_clock_decides_and_where_it_cannot_the_median_saving_does() -> None:
    rows = [
        *(measured("conv+relu", str(shape), FUSED, 0.9) for shape in range(3)),
        *(measured("conv+add", str(shape), NOT_FUSED, 0.1) for shape in range(3)),
        *(measured("add+relu", str(shape), UNDECIDED, saving) for shape, saving in enumerate((0.4, 0.7, 0.8))),
        *(measured("fc+relu", str(shape), UNDECIDED, saving) for shape, saving in enumerate((0.1, 0.4, 0.9))),
    ]
    assert verdicts_of(rows) == {"conv+relu": True, "conv+add": False, "add+relu": True, "fc+relu": False}


def test_the_runtimes_own_graph_decides_where_it_is_known() -> None:
    told = {"conv+relu": (FUSED, NOT_FUSED, -6.6), "conv+maxpool": (NOT_FUSED, FUSED, 1.6)}
    rows = [
        replace(measured(pair, str(shape), clock, saving), white_box=graph_says)
        for pair, (graph_says, clock, saving) in told.items()
        for shape in range(3)
    ]
    assert verdicts_of(rows) == {"conv+relu": True, "conv+maxpool": False}


def test_a_predictor_with_verdicts_answers_for_its_own_kernels() -> None:
    rows = [*law.rows(40, ("conv",)), law.measurement(conv(), noise=0.0), law.measurement(each("relu"), noise=0.0)]
    net = graph(("a", conv(), ("x",)), ("r", each("relu"), ("a",)), outputs=("r",))
    apart, fused = (
        train_on(rows, law.TARGET, estimator="roofline", hardware=law.HARDWARE, fusion=verdicts)
        for verdicts in ({}, {"conv+relu": True})
    )
    assert fused.manifest.fusion == {"conv+relu": True}
    two = CostModel(apart, missing=BYTES_MOVED, exact=True).network(net)
    one = CostModel(fused, missing=BYTES_MOVED, exact=True).network(net)
    assert [row.kernel for row in one.rows] == [conv()]
    assert one.total_ns < two.total_ns
    # one entry per operator of the network: the fused one takes no time of its own
    assert one.node_ns.tolist() == pytest.approx([one.total_ns, 0.0])
    assert np.isclose(two.node_ns.sum(), two.total_ns)
    assert replace(one, node_ns=two.node_ns).rows == one.rows
