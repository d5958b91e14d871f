"""What makes each small design what it is, read off its trace."""

from collections import Counter
from pathlib import Path

import pytest

from opmark.core.kernels.graph import Graph
from opmark.models.resolve import graph_of
from opmark.models.zoo import FAMILIES, family_of


def kinds(graph: Graph) -> Counter[str]:
    return Counter(node.kernel.kind for node in graph.costly)


def trace(model: str) -> Graph:
    return graph_of(model, "torch-eager-t1")


def operators(graph: Graph, kind: str) -> Counter[str]:
    return Counter(str(node.kernel.params["op"]) for node in graph.costly if node.kernel.kind == kind)


@pytest.mark.parametrize(
    "name", ["light", "mixture-of-experts", "nasnet-like", "plain-cnn", "two-tower", "wide-and-deep"]
)
def test_a_model_leads_back_to_its_family(name: str) -> None:
    family = FAMILIES.load(name)
    assert family.name == name
    assert {family_of(model).name for model in family.names} == {name}


def test_light_networks_are_nine_files_that_exist() -> None:
    family = family_of("light-resnet50")
    paths = [family.onnx_path(model) for model in family.names]
    assert len({path for path in paths if isinstance(path, Path) and path.is_file()}) == 9
    assert family.label("light-inception-v1") == family.label("light-inception-v2") == "inception"


def test_mixture_of_experts_weighs_every_expert_of_a_layer() -> None:
    graph = trace("mixture-of-experts-tiny")
    layers = kinds(graph)["norm"]
    experts = (kinds(graph)["gemm"] / layers - 1) / 2
    assert layers >= 1
    assert experts == int(experts) >= 2
    assert kinds(graph)["softmax"] == layers
    assert operators(graph, "elementwise")["mul"] == layers * experts


def test_nasnet_like_joins_branches_and_separates_depth() -> None:
    graph = trace("nasnet-like-tiny")
    assert operators(graph, "movement")["concat"] >= 1
    assert any(node.kernel.params["groups"] == node.kernel.params["channels_in"] > 1 for node in conv(graph))
    readers = Counter(name for node in graph.nodes for name in node.inputs if name in graph.tensors)
    assert max(readers.values()) >= 3


@pytest.mark.parametrize(("model", "adds"), [("vgg-small", 0), ("resnet-small", 8), ("bottleneck-small", 8)])
def test_plain_cnns_add_residuals_where_their_design_does(model: str, adds: int) -> None:
    assert operators(trace(model), "elementwise")["add"] == adds


def test_mobilenet_small_is_mostly_depthwise_and_pointwise() -> None:
    shapes = Counter(
        "depthwise" if node.kernel.params["groups"] != 1 else str(node.kernel.params["kernel"])
        for node in conv(trace("mobilenet-small"))
    )
    assert shapes["depthwise"] >= 8
    assert shapes["(1, 1)"] > shapes["depthwise"]


def test_two_towers_meet_in_one_product() -> None:
    graph = trace("two-tower-tiny")
    scopes = {node.scope.partition(".")[0] for node in graph.costly if node.scope}
    assert scopes == {"user", "item"}
    assert kinds(graph)["matmul"] == 1


def test_wide_and_deep_looks_up_every_field() -> None:
    graph = trace("wide-and-deep-tiny")
    assert kinds(graph)["gather"] == family_of("wide-and-deep-tiny").sizes["wide-and-deep-tiny"]
    assert operators(graph, "elementwise")["add"] >= 1


def conv(graph: Graph) -> list:
    return [node for node in graph.costly if node.kernel.kind == "conv"]
