"""Groups, and everything on single devices."""

from dataclasses import replace

import pytest
from tests.leaderboards.examples import device, graph, pair

from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.placers import round_robin
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.search.single import best_single_device, fill_by_memory


def tied() -> Problem:
    """Three units, two of one class; the second runs on x only."""
    cluster = replace(pair(), devices=(device("d0", "x"), device("d1", "y")))
    problem = graph({"a": 10, "b": 20, "c": 30}, [("a", ["b"]), ("b", ["c"])], cluster, weights={"w": 5, "v": 7})
    units = (
        replace(problem.units[0], colocation="k", weights=("w",), workspace_bytes=1),
        Unit(name="b", exec_ns={"x": 20}, weights=("v",)),
        replace(problem.units[2], colocation="k", weights=("w",)),
    )
    return replace(problem, units=units)


def test_groups_contract_classes() -> None:
    groups = groups_of(tied())
    assert groups.members == ((0, 2), (1,))
    assert groups.run_ns.tolist() == [[40, 40], [20, -1]]
    assert groups.weight_bytes.tolist() == [5, 7]
    assert groups.size_bytes.tolist() == [6, 7]
    assert groups.spread([1, 0]).tolist() == [1, 0, 1]


def test_a_class_that_nothing_can_run_is_named() -> None:
    problem = tied()
    units = (
        replace(problem.units[0], exec_ns={"y": 1}),
        *problem.units[1:2],
        replace(problem.units[2], exec_ns={"x": 1}),
    )
    with pytest.raises(PlacementError, match="class that holds a, c"):
        groups_of(replace(problem, units=units))


def test_the_best_single_device_lends_what_it_cannot_run() -> None:
    devices, cost = best_single_device(tied())
    assert devices.tolist() == [0, 0, 0]
    assert cost == 60


def test_filling_goes_on_to_the_next_device_when_one_is_full() -> None:
    cluster = Cluster(name="two", devices=(device("slow", "s", memory_bytes=100), device("fast", "f", memory_bytes=15)))
    problem = graph(dict.fromkeys("abc", 1), [], cluster, weights={"w": 10, "v": 10, "u": 10})
    units = tuple(
        replace(unit, exec_ns={"s": 100, "f": 1}, weights=(weight,))
        for unit, weight in zip(problem.units, "wvu", strict=True)
    )
    problem = replace(problem, units=units)
    assert fill_by_memory(problem, groups_of(problem)).tolist() == [1, 0, 0]
    devices, cost = best_single_device(problem)
    assert (devices.tolist(), cost) == ([0, 0, 0], 300)
    devices, cost = best_single_device(
        replace(problem, cluster=replace(cluster, devices=(device("slow", "s", memory_bytes=20), cluster.devices[1])))
    )
    assert (sorted(devices.tolist()), cost) == ([0, 0, 1], 200)


def test_round_robin_skips_what_cannot_run_a_unit() -> None:
    placed = round_robin.PLACER.place(tied(), budget_s=1, seed=0)
    assert placed.device == {"a": "d0", "c": "d0", "b": "d0"}
    free = graph(dict.fromkeys("abc", 1), [], pair())
    assert round_robin.PLACER.place(free, budget_s=1, seed=0).device == {"a": "d0", "b": "d1", "c": "d0"}
