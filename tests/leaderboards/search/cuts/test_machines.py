"""Machines of clusters with fast and slow links."""

from dataclasses import replace

from tests.leaderboards.examples import device, graph, star

from opmark.core.hardware.cluster import Cluster, Link
from opmark.leaderboards.search.cuts.machines import machines_of


def test_hosts_and_their_gpus_are_machines() -> None:
    names = ("h0", "g0", "g1", "h1", "g2", "g3")
    rates = {("h0", "g0"): 12, ("h0", "g1"): 12, ("g0", "g1"): 50, ("h1", "g2"): 12, ("h1", "g3"): 12, ("h0", "h1"): 3}
    links = tuple(
        Link(source=one, destination=other, latency_ns=1, bandwidth_bytes_per_s=rate * 1e9)
        for (a, b), rate in rates.items()
        for one, other in ((a, b), (b, a))
    )
    cluster = Cluster(name="two", devices=tuple(map(device, names)), links=links)
    problem = replace(graph({"a": 1}, [], star()), cluster=cluster)
    assert machines_of(problem, range(6)) == [(0, 1, 2), (3, 4, 5)]
    assert machines_of(problem, [4, 1, 2]) == [(4,), (1, 2)]


def test_equal_links_make_one_machine() -> None:
    assert machines_of(graph({"a": 1}, [], star(devices=4)), [2, 0, 1, 3]) == [(2, 0, 1, 3)]
