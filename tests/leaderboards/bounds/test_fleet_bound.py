"""Bounds of pools by constraint programming: exact where every placement says so, and decided again."""

from dataclasses import replace

import numpy as np
import pytest
from tests.leaderboards.pools import MS, pool
from tests.leaderboards.search.renting.test_fleet_hunt import every_placement

from opmark.leaderboards.bounds.certificate import certificate_of, holds
from opmark.leaderboards.bounds.fleet_bound import applies, beats_nothing, interchangeable, pool_bound
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.search.renting.device_pool import DevicePool

pytest.importorskip("ortools", reason="the extra `solvers` is not installed")


@pytest.mark.parametrize(
    "problem",
    [
        pool("cost", latency_ns=13 * MS),
        pool("cost", latency_ns=12 * MS, transfer_ns=MS),
        pool("latency", price_per_hour=4.5),
        pool("latency", price_per_hour=2.0, transfer_ns=MS),
    ],
)
def test_the_bound_is_the_least_cost_of_all_placements(problem):
    table, costs = every_placement(problem)
    best = Placement(device=table[int(costs.argmin())])
    bound = pool_bound(problem, best, seconds=60.0)
    assert bound == costs.min()
    certificate = certificate_of(problem, bound, bound, 60.0)
    assert certificate.grid_ns == 1
    assert holds(problem, certificate, seconds=60.0) is True
    # an answer that is not the best one proves no more than what is true
    worse = Placement(device=table[int(np.argsort(costs)[1])])
    assert (pool_bound(problem, worse, seconds=60.0) or 0) <= costs.min()
    assert beats_nothing(problem, int(costs.min()) + 2 * MS, grid_ns=1, seconds=60.0) is False


def test_no_time_decides_nothing():
    problem = pool("latency", price_per_hour=4.5)
    known = Placement(device=np.array([0, 0, 5, 0], dtype=np.int64))
    assert pool_bound(problem, known, seconds=0.0) is None
    assert beats_nothing(problem, 8 * MS, grid_ns=1, seconds=0.0) is None


def test_pools_with_replicas_or_unlike_devices_of_a_type_are_left_to_the_relaxations():
    problem = pool("latency", price_per_hour=4.5)
    assert applies(problem)
    assert not applies(pool("throughput", price_per_hour=4.5))
    assert not applies(pool("rent", period_ns=9 * MS))
    links = tuple(
        replace(link, latency_ns=5) if {link.source, link.destination} == {"slow-0", "fast-0"} else link
        for link in problem.cluster.links
    )
    apart = replace(problem, cluster=replace(problem.cluster, links=links))
    assert not interchangeable(DevicePool.of(apart))
    # two hosts: slow-0 and slow-1 share a port to the rest, slow-2 has its own
    ports = {"slow-0": "x", "slow-1": "x", "slow-2": "y"}
    shared = tuple(replace(link, port=ports.get(link.source, "")) for link in problem.cluster.links)
    assert not interchangeable(DevicePool.of(replace(problem, cluster=replace(problem.cluster, links=shared))))
    own = tuple(replace(link, port=f"{link.source}>") for link in problem.cluster.links)
    assert interchangeable(DevicePool.of(replace(problem, cluster=replace(problem.cluster, links=own))))
