"""What makes each family from transformers what it is, read off the trace of its small network."""

import importlib.util
from collections import Counter

import pytest

from opmark.core.kernels.graph import Graph
from opmark.models.coverage import coverage
from opmark.models.resolve import graph_of
from opmark.models.zoo import FAMILIES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)

# Per family, operators (or kinds) that must be there as often as said, read off the design's paper and the layers of
# the small network.
DESIGNS = {
    "albert": {"attention": 3, "tanh": 3 + 1},
    "bart": {"attention": 2 + 2 * 2, "gelu": 4},
    "clip-vision": {"attention": 4, "sigmoid": 4, "conv": 1},
    "convnextv2": {"conv": 1 + 3 + 12, "layer": 1 + 3 + 12 + 1},
    "deberta-v2": {"gather-elements": 2 * 3, "softmax": 3},
    "deit": {"attention": 12, "gelu": 12},
    "dinov2": {"attention": 4, "gelu": 4},
    "distilbert": {"attention": 3, "tanh": 0, "gelu": 3},
    "gemma": {"attention": 3, "rsqrt": 7, "gelu-tanh": 3},
    "levit": {"attention": 0, "softmax": 2 + 3 + 4 + 2},
    "mistral": {"attention": 3, "rsqrt": 7, "silu": 3},
    "mobilenet-v1": {"conv": 27},
    "mobilevit": {"softmax": 2 + 4 + 3},
    "opt": {"attention": 3, "relu": 3},
    "phi": {"attention": 3, "rsqrt": 0},
    "poolformer": {"pool": 6, "attention": 0},
    "qwen2": {"attention": 3, "rsqrt": 7, "silu": 3},
    "qwen3": {"attention": 3, "rsqrt": 7 + 6, "silu": 3},
    "regnet": {"sigmoid": 1 + 1 + 4 + 7},
    "roberta": {"attention": 3, "tanh": 1},
    "segformer": {"attention": 8, "resize": 4},
    "t5": {"rsqrt": 2 * (2 + 3) + 2, "relu": 4, "attention": 2 + 2 * 2},
    "whisper": {"conv": 2, "attention": 2 + 2 * 2},
}


def counts(graph: Graph) -> Counter[str]:
    """Kernels by kind and by operator."""
    kinds = Counter(node.kernel.kind for node in graph.costly)
    return kinds + Counter(str(node.kernel.params.get("op", "")) for node in graph.costly)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_small_network_has_its_familys_design(name, tmp_path):
    [model] = FAMILIES.load(name).small
    graph = graph_of(model, "torch-eager-t1", cache=tmp_path)
    found = counts(graph)
    assert {operator: found[operator] for operator in DESIGNS[name]} == DESIGNS[name]
    assert coverage(graph).hidden == ()
    assert coverage(graph).bytes_moved_share <= 0.01
