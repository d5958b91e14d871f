"""Graphs of measured networks, their bytes that compete for the cache, and their class."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.predictors import law

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.core.measurements.measurement import OK, NetworkMeasurement
from opmark.models.resolve import graph_of
from opmark.predictors.inputs.graphs import TRAINING, footprint_bytes, graphs_of, network_class


def network(name: str, graph_id: str) -> NetworkMeasurement:
    return NetworkMeasurement(
        network=name, family="plain-cnn", target=law.TARGET.name, graph_id=graph_id, status=OK, latency_ns=1e6
    )


def test_networks_are_found_by_name_under_the_id_they_were_measured_as(tmp_path: Path) -> None:
    heard: list[str] = []
    found = graphs_of([network("plain-tiny", "0" * 16)], "torch-eager-t1", cache=tmp_path, warn=heard.append)
    assert list(found) == ["0" * 16]
    assert heard == ["plain-tiny has other kernels here than where it was measured"]
    graph = found["0" * 16]
    again = graphs_of([network("plain-tiny", graph.id)] * 2, "torch-eager-t1", cache=tmp_path, warn=heard.append)
    assert again[graph.id].id == graph.id
    assert len(heard) == 1


def test_a_network_nobody_has_is_named_and_left_out(tmp_path: Path) -> None:
    heard: list[str] = []
    assert graphs_of([network("my-own-net", "1" * 16)], "torch-eager-t1", cache=tmp_path, warn=heard.append) == {}
    assert heard[0].startswith("my-own-net is left out: ")


def test_a_network_measured_in_another_size_is_found_among_what_was_captured(tmp_path: Path) -> None:
    heard: list[str] = []
    small = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path, dimensions={"size": 24})
    large = graph_of("plain-tiny", "torch-eager-t1", cache=tmp_path, dimensions={"size": 48})
    assert small.id != large.id
    both = [network("plain-tiny", small.id), network("plain-tiny", large.id)]
    found = graphs_of(both, "torch-eager-t1", cache=tmp_path, warn=heard.append)
    assert {key: graph.id for key, graph in found.items()} == {small.id: small.id, large.id: large.id}
    assert heard == []
    # without the captures nobody can say which size a row is of
    elsewhere = graphs_of(both, "torch-eager-t1", cache=tmp_path / "empty", warn=heard.append)
    assert elsewhere == {}
    assert len(heard) == 2
    told = [replace(one, size=size, graph_id=key) for one, size, key in zip(both, (24, 48), "ab", strict=True)]
    by_size = graphs_of(told, "torch-eager-t1", cache=tmp_path / "empty", warn=heard.append)
    assert {key: graph.id for key, graph in by_size.items()} == {"a": small.id, "b": large.id}


def test_a_network_of_one_size_is_found_whatever_kernels_it_had_before(tmp_path: Path) -> None:
    heard: list[str] = []
    both = [network("light-squeezenet", "0" * 16), network("light-squeezenet", "1" * 16)]
    found = graphs_of(both, "onnxruntime-cpu-t1", cache=tmp_path, warn=heard.append)
    assert set(found) == {"0" * 16, "1" * 16}
    assert len({graph.id for graph in found.values()}) == 1


@pytest.mark.parametrize("width", [8, 16])
def test_other_kernels_still_have_the_blocks_of_the_measured_processor(width: int, tmp_path: Path) -> None:
    measured = [network("vgg-small", "0" * 16)]
    [found] = graphs_of(measured, "onnxruntime-cpu-t1", cache=tmp_path, warn=lambda _: None, block_width=width).values()
    assert {node.kernel.params.get("block", 0) for node in found.nodes} - {0} == {width}


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
