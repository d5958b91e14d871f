"""Analytic devices give kinds believable shares of a network's time, beside those of a measured device."""

from collections import Counter
from pathlib import Path

import pytest

from opmark.core.kernels.graph import Graph
from opmark.core.shipped import shipped_content
from opmark.leaderboards.making.device_table import costs_of, load_table, table_names
from opmark.models.graphs.shipped import graphs_folder, sized_graphs
from opmark.predictors.model.bundle import load
from opmark.predictors.model.bundle_paths import path_of
from opmark.predictors.model.cost_model import CostModel

LEADERBOARDS = Path(__file__).resolve().parents[2] / "leaderboards"


@pytest.fixture(scope="module")
def inception() -> Graph:
    return next(graph for graph in sized_graphs("inception", graphs_folder()) if graph.language == "aten")


def shares(graph: Graph, node_ns: list[float]) -> Counter[str]:
    found: Counter[str] = Counter()
    for node, ns in zip(graph.nodes, node_ns, strict=True):
        found[node.kernel.kind] += ns / sum(node_ns)
    return found


def tables() -> list[str]:
    found = [(name, load_table(LEADERBOARDS, name)) for name in table_names(LEADERBOARDS)]
    return [name for name, table in found if not table.bundle and not table.layers]


@pytest.fixture(scope="module")
def measured(inception: Graph) -> Counter[str]:
    """The shares on one thread of a measured processor."""
    model = CostModel(load(path_of(shipped_content(), "torch-eager-t1")))
    return shares(inception, model.network(inception).node_ns.tolist())


@pytest.mark.parametrize("name", tables())
def test_pooling_takes_no_more_than_on_the_measured_processor(
    name: str, inception: Graph, measured: Counter[str]
) -> None:
    found = shares(
        inception, costs_of(load_table(LEADERBOARDS, name), LEADERBOARDS).network(inception).node_ns.tolist()
    )
    assert found["pool"] <= measured["pool"]
    assert found.most_common(1)[0][0] == measured.most_common(1)[0][0] == "conv"
