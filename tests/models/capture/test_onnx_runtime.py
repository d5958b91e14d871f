"""A captured graph is what ONNX Runtime runs: every kernel in a family, able to run alone, traced to its origin."""

from collections import Counter
from pathlib import Path

import pytest
from tests.kinds.single_node import promised, results
from tests.models.onnx_models import LIGHT, array, integers, light_graph, light_path, model, node, saved

from opmark.core.errors import ContentError
from opmark.core.kernels.call import OnnxNode
from opmark.core.kernels.graph import Graph
from opmark.kinds import GENERIC, kind_of, of_onnx
from opmark.models.capture.onnx_runtime import capture
from opmark.models.capture.onnx_session import block_width
from opmark.models.coverage import coverage

# Two operations per multiply-accumulate, as the papers count them, within a tenth (fused extras, paddings).
KNOWN_GFLOPS = {"light-resnet50": 8.2, "light-vgg19": 39.3, "light-squeezenet": 0.70, "light-inception-v1": 3.0}

CONVOLUTIONS = {"light-shufflenet": 49, "light-resnet50": 53, "light-densenet121": 121, "light-inception-v1": 57}


def rebuilt(graph: Graph) -> list[OnnxNode]:
    kernels = {item.kernel.key: item.kernel for item in graph.nodes}.values()
    nodes = []
    for kernel in kernels:
        family = kind_of(kernel)
        again = family.to_onnx(family.parse(kernel))
        assert again is not None, kernel
        assert of_onnx(again)[0] == kernel
        nodes.append(again)
    return nodes


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_network_is_covered(name: str) -> None:
    graph = light_graph(name)
    covered = coverage(graph)
    assert covered.bytes_moved_share <= 0.02
    assert not covered.hidden
    assert not covered.generic
    assert graph.language == "onnx"
    assert graph.target == "onnxruntime-cpu-t1"
    for item in graph.nodes:
        assert all(graph.tensors[tensor].elements for tensor in item.outputs)


@pytest.mark.parametrize("name", LIGHT)
def test_every_kernel_of_a_light_network_survives_the_way_back(name: str) -> None:
    assert rebuilt(light_graph(name))


@pytest.mark.parametrize("name", ["light-shufflenet", "light-squeezenet", "light-inception-v2"])
def test_every_small_kernel_of_a_network_runs_alone(name: str) -> None:
    ran = 0
    for again in rebuilt(light_graph(name)):
        work = of_onnx(again)[1]
        if work.flops < 2e7 and work.moved_bytes < 8e6:
            assert results(again) == promised(again)
            ran += 1
    assert ran >= 10


@pytest.mark.parametrize(("name", "gflops"), KNOWN_GFLOPS.items())
def test_the_work_of_known_networks(name: str, gflops: float) -> None:
    assert light_graph(name).work.flops / 1e9 == pytest.approx(gflops, rel=0.1)


def test_weights_stand_beside_the_graph() -> None:
    graph = light_graph("light-resnet50")
    assert graph.weight_bytes == pytest.approx(102e6, rel=0.02)
    assert graph.inputs == ("gpu_0/data_0",)
    assert not set(graph.weights) & set(graph.tensors)


def test_two_captures_are_the_same_graph() -> None:
    path = light_path("light-squeezenet")
    first, second = capture(path), capture(path, name="again")
    assert first.id == second.id
    assert (first.name, second.name) == ("light_squeezenet", "again")


@pytest.mark.parametrize(("name", "convolutions"), CONVOLUTIONS.items())
def test_every_original_operator_has_one_kernel(name: str, convolutions: int) -> None:
    graph = light_graph(name)
    counted = Counter(origin for item in graph.nodes for origin in item.origins if origin != "inserted")
    assert set(counted.values()) == {1}
    assert Counter(origin.partition(":")[0] for origin in counted)["Conv"] == convolutions


def block(path: Path) -> Path:
    """Two convolutions and a skip, with the notes that torch's exporter leaves."""
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], "body.0.conv1", kernel_shape=[3, 3], pads=[1] * 4),
        node("Relu", ["c1"], ["r1"], "body.0.act"),
        node("Conv", ["r1", "w2"], ["c2"], "body.0.conv2", kernel_shape=[3, 3], pads=[1] * 4),
        node("Add", ["c2", "r1"], ["sum"], "body.0"),
        node("Relu", ["sum"], ["r2"], "body.0"),
        node("GlobalAveragePool", ["r2"], ["p"], "pool"),
        node("Flatten", ["p"], ["f"], "pool"),
        node("MatMul", ["f", "w3"], ["m"], "head"),
        node("Add", ["m", "b3"], ["y"], "head"),
    ]
    weights = [array("w1", 32, 16, 3, 3), array("w2", 32, 32, 3, 3), array("w3", 32, 10), array("b3", 10)]
    return saved(model(nodes, {"x": ["batch", 16, 8, 8]}, ["y"], weights), path)


def test_fused_kernels_know_what_they_cover_and_where_it_was(tmp_path: Path) -> None:
    graph = capture(block(tmp_path / "block.onnx"), dimensions={"batch": 2})
    convolutions = [item for item in graph.nodes if item.kernel.kind == "conv"]
    assert [item.origins for item in convolutions] == [
        ("Conv:node_c1", "Relu:node_r1"),
        ("Conv:node_c2", "Add:node_sum", "Relu:node_r2"),
    ]
    assert [item.scope for item in convolutions] == ["body.0.conv1", "body.0.conv2"]
    assert convolutions[1].kernel.params["residual"] is True
    assert convolutions[1].kernel.params["activation"] == "relu"
    product = next(item for item in graph.nodes if item.kernel.kind == "gemm")
    assert product.origins == ("MatMul:node_m", "Add:node_y")
    assert product.scope == "head"
    assert product.kernel.params["m"] == 2


def test_the_layout_is_the_hosts(tmp_path: Path) -> None:
    width = block_width()
    graph = capture(block(tmp_path / "block.onnx"), dimensions={"batch": 1})
    assert {item.kernel.params["block"] for item in graph.nodes if item.kernel.kind == "conv"} == {width}
    reorders = [item for item in graph.nodes if str(item.kernel.params.get("op", "")).startswith("reorder")]
    assert bool(reorders) == bool(width)
    assert all(item.origins == ("inserted",) for item in reorders)


def test_what_no_family_takes_keeps_its_name(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("Det", ["r"], ["d"]), node("Add", ["d", "d"], ["y"])]
    graph = capture(saved(model(nodes, {"x": [6, 4, 4]}, ["y"]), tmp_path / "det.onnx"))
    generic = [item for item in graph.nodes if item.kernel.kind == GENERIC]
    assert [item.origins for item in generic] == [("Det", "Det:node_d")]
    assert generic[0].work.read_bytes == 6 * 16 * 4


def test_an_operator_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = saved(model([node("com.example:Mystery", ["x"], ["y"])], {"x": [4]}, ["y"]), tmp_path / "odd.onnx")
    with pytest.raises(ContentError, match="Mystery") as caught:
        capture(path)
    assert caught.value.where == str(path)
    assert "\n" not in caught.value.message


def test_shapes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    built = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 3]}, ["y"], [array("w", 4, 5)])
    path = saved(built, tmp_path / "unfit.onnx")
    with pytest.raises(ContentError, match="ONNX Runtime refuses it") as caught:
        capture(path)
    assert caught.value.where == str(path)


def test_shapes_known_only_from_values_come_from_a_run(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["x"], ["n"]), node("Transpose", ["n"], ["t"]), node("GatherND", ["x", "t"], ["y"])]
    graph = capture(saved(model(nodes, {"x": [2, 3]}, ["y"]), tmp_path / "values.onnx"))
    assert graph.tensors["y"].shape == (6,)


def test_constants_that_choose_places_are_parameters(tmp_path: Path) -> None:
    nodes = [node("Slice", ["x", "s", "e", "a"], ["c"]), node("Relu", ["c"], ["y"])]
    weights = [integers("s", 1), integers("e", 3), integers("a", 1)]
    graph = capture(saved(model(nodes, {"x": [2, 8]}, ["y"], weights), tmp_path / "slice.onnx"))
    assert graph.nodes[0].kernel.params["arguments"] == (0, 1, 2, 3, 1, 1)
    assert set(graph.weights) <= {"s", "e", "a"}
