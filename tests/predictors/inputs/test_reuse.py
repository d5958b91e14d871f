"""What a network reads before it comes back to a weight, and which class of networks it is."""

from dataclasses import replace

import numpy as np
import pytest
from tests.predictors import law

from opmark.core.graph import Graph, Node
from opmark.core.kernel import Kernel
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds import work_of
from opmark.predictors.inputs.reuse import TRAINING, footprint_bytes, network_class, weight_shares
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.training import train_on


def looked_up(weight_bytes: int, *, free: bool = False) -> Graph:
    """One node that reads `weight_bytes` of a table of a million."""
    kernel = law.kernels("gemm", 1)[0]
    work = Work(flops=0, read_bytes=weight_bytes, written_bytes=64, weight_bytes=weight_bytes)
    node = Node(name="n", kernel=kernel, work=work, inputs=("in", "table"), outputs=("out",), free=free)
    return Graph(
        name="lookup",
        language="onnx",
        nodes=(node,),
        tensors={"in": TensorSpec((16,)), "out": TensorSpec((16,))},
        inputs=("in",),
        outputs=("out",),
        weights={"table": TensorSpec((1_000_000,), "int8")},
    )


def test_of_a_table_only_the_rows_that_are_read_count() -> None:
    activations = looked_up(1).peak_activation_bytes
    assert footprint_bytes(looked_up(5000)) == 5000 + activations
    assert footprint_bytes(looked_up(1_000_000)) == 1_000_000 + activations
    # read again and again, it is still no larger than it is
    assert footprint_bytes(looked_up(9_000_000)) == 1_000_000 + activations


def test_a_view_reads_the_whole_weight() -> None:
    assert footprint_bytes(looked_up(0, free=True)) >= 1_000_000


def test_the_class_is_the_element_type_of_most_flops_or_training() -> None:
    one = law.graph("net", law.kernels("gemm", 3))
    assert network_class(one) == "float32"
    step = replace(one, nodes=(*one.nodes[:-1], replace(one.nodes[-1], phase="backward")))
    assert network_class(step) == TRAINING
    small = replace(one.nodes[0], work=Work(flops=1, read_bytes=1, written_bytes=1))
    params = {**one.nodes[1].kernel.params, "dtype": "bfloat16"}
    mixed = replace(one, nodes=(small, replace(one.nodes[1], kernel=Kernel.of("gemm", params)), *one.nodes[2:]))
    large = replace(mixed.nodes[1], work=Work(flops=10**15, read_bytes=1, written_bytes=1))
    assert network_class(replace(mixed, nodes=(small, large, *one.nodes[2:]))) == "bfloat16"
    assert network_class(replace(one, nodes=())) == "float32"


def test_weights_have_their_share_of_a_kernels_bytes() -> None:
    chosen = law.kernels("gemm", 3)
    one = law.graph("net", chosen)
    parts = CostModel(train_on(law.rows(20, ("gemm",)), law.TARGET)).parts(one)
    expected = [work_of(kernel).weight_bytes / work_of(kernel).moved_bytes for kernel in parts.kernels]
    assert weight_shares(one, parts) == pytest.approx(np.array(expected))
