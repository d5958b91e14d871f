"""Measured networks found again by name."""

from pathlib import Path

from tests.predictors import law

from opmark.core.measurement import OK, NetworkMeasurement
from opmark.models.resolve import graph_of
from opmark.predictors.inputs.graphs import graphs_of


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
