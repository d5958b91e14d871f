"""The sum of a network's kernels, and its interval."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predictors import law

from opmark.core.kernels.graph import Graph
from opmark.kinds import work_of
from opmark.predictors.composition.host_time import HostConstants
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.network import NetworkPrediction, predict_network, weight_shares
from opmark.predictors.model.training import train_on


def test_weights_have_their_share_of_a_kernels_bytes() -> None:
    chosen = law.kernels("gemm", 3)
    one = law.graph("net", chosen)
    parts = CostModel(train_on(law.rows(20, ("gemm",)), law.TARGET)).parts(one)
    expected = [work_of(kernel).weight_bytes / work_of(kernel).moved_bytes for kernel in parts.kernels]
    assert weight_shares(one, parts) == pytest.approx(np.array(expected))


@cache
def shared_bundle() -> Bundle:
    return train_on(law.rows(40), law.TARGET, hardware=law.HARDWARE)


def drawn(seed: int, name: str) -> Graph:
    """A network of six to twenty kernels that no test learns from."""
    source = random.Random(seed)
    chosen = [source.choice(law.kernels(kind, 60, seed=9)) for kind in source.choices(law.KIND_NAMES, k=12)]
    return law.graph(name, chosen[: source.randint(6, 12)] + chosen[: source.randint(0, 8)])


def width(found: NetworkPrediction) -> float:
    return float(np.log(found.high_ns / found.low_ns))


@given(st.integers(0, 10_000), st.floats(0.0, 3.0))
def test_an_interval_contains_its_point_and_grows_as_evidence_shrinks(seed: int, scale: float) -> None:
    bundle = shared_bundle()
    graph = drawn(seed, "net")
    parts = CostModel(bundle).parts(graph)
    constants = replace(bundle.constants, interval_scale=scale)
    manifest = replace(bundle.manifest, constants=constants)
    found = predict_network(graph, parts, manifest)
    assert found.low_ns <= found.total_ns <= found.high_ns
    doubtful = predict_network(graph, replace(parts, half_width=2 * parts.half_width), manifest)
    assert width(doubtful) > width(found)
    measured = replace(parts, exact=np.ones_like(parts.exact), half_width=np.full(len(parts.kernels), 0.01))
    # Both widths are drawn. Where the composition decides, single kernels move the width less than the draws do.
    assert width(predict_network(graph, measured, manifest)) < 1.005 * width(found)
    unscaled = replace(manifest, constants=replace(constants, interval_scale=1.0))
    assert width(found) >= width(predict_network(graph, parts, unscaled)) - 1e-12, "a scale only widens"


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_a_network_on_a_device_of_its_own_takes_the_longer_of_both_times(seed: int, ratio: float) -> None:
    bundle = shared_bundle()
    graph = drawn(seed, "net")
    parts = CostModel(bundle).parts(graph)
    alone = predict_network(graph, parts, bundle.manifest)
    assert (alone.host_ns, alone.device_ns) == (None, None)
    each_ns = ratio * alone.total_ns / len(graph.nodes)
    host = HostConstants(enqueue_ns=dict.fromkeys(law.KIND_NAMES, each_ns), share=1.0, view_ns=0.0, python_call_ns=0.0)
    manifest = replace(bundle.manifest, constants=replace(bundle.constants, host=host))
    found = predict_network(graph, parts, manifest)
    assert found.host_ns == pytest.approx(ratio * alone.total_ns)
    assert found.device_ns == pytest.approx(alone.total_ns)
    assert found.total_ns == max(found.host_ns, found.device_ns)
    assert found.low_ns <= found.total_ns <= found.high_ns
    assert found.low_ns >= alone.low_ns
    assert found.high_ns >= alone.high_ns
    # A placement moves the device's work.
    assert found.node_ns.sum() == pytest.approx(found.device_ns)


def test_nine_in_ten_networks_of_unseen_families_are_inside() -> None:
    """Networks follow the law of the test machine, each with an error of its own; none of their kernels was learned."""
    source = np.random.default_rng(3)
    graphs = {f"n{number}": drawn(number, f"n{number}") for number in range(80)}
    networks = []
    for number, (name, graph) in enumerate(graphs.items()):
        exact = law.network(graph, share=0.5)
        off = float(np.exp(source.normal(0, 0.06)))
        role = "training" if number < 20 else "held-out"
        networks.append(replace(exact, network=name, role=role, latency_ns=off * (exact.latency_ns or 0.0)))
    trained = train_on(law.rows(60), law.TARGET, hardware=law.HARDWARE, networks=networks, graphs=graphs)
    model = CostModel(trained)
    unseen = [(one.latency_ns or 0.0, model.network(graphs[one.network])) for one in networks if one.role == "held-out"]
    inside = np.mean([found.low_ns <= latency <= found.high_ns for latency, found in unseen])
    assert 0.85 <= inside <= 1
    assert np.median([width(found) for _, found in unseen]) < 0.6, "not uselessly wide"
