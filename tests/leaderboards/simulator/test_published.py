"""Published models: worked by hand, and one placement at a time against many at once."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair, star
from tests.leaderboards.reference_loads import max_load

from opmark.core.errors import PlacementError, UnknownNameError
from opmark.core.hardware.cluster import Cluster, Link
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import PROFILES, profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.direct_models import check_supported, device_prices, summed_bytes, unsupported
from opmark.leaderboards.simulator.published import atomic_calls, contention_free, maxload_serial, source_bus_multicast
from opmark.leaderboards.simulator.published.pipedream_stage import slowest_bandwidth, stage_ns
from opmark.leaderboards.simulator.simulate import simulate, simulate_many


def cost(problem: Problem, profile: str, places: dict[str, str]) -> int:
    return simulate(problem, placement_of(problem, Solution(device=places)), profile_named(profile)).cost_ns


def test_the_profiles_of_the_design_exist() -> None:
    published = {"contention_free", "maxload_serial", "atomic_calls", "half_duplex_port", "source_bus_multicast"}
    assert {profile.name for profile in PROFILES} == published | {"pipedream_stage", "opsim1"}
    assert all(profile.summary for profile in PROFILES)
    assert profile_named("maxload_serial") is maxload_serial.PROFILE
    assert profile_named("atomic_calls") is atomic_calls.PROFILE
    assert source_bus_multicast.PROFILE.multicast
    assert not contention_free.PROFILE.contention
    assert profile_named("half-duplex-port") is profile_named("half_duplex_port")
    with pytest.raises(UnknownNameError, match="no profile is called 'opsim9'"):
        profile_named("opsim9")


def test_a_port_sends_or_receives() -> None:
    crossing = graph({"a": 10, "b": 10, "x": 1, "y": 1}, [("a", ["x"]), ("b", ["y"])], pair())
    places = {"a": "d0", "b": "d1", "x": "d1", "y": "d0"}
    assert (cost(crossing, "opsim1", places), cost(crossing, "half_duplex_port", places)) == (31, 51)
    broadcast = graph({"a": 10, "x": 1, "y": 1}, [("a", ["x", "y"])], star())
    away = {"a": "d0", "x": "d1", "y": "d2"}
    assert (cost(broadcast, "opsim1", away), cost(broadcast, "half_duplex_port", away)) == (31, 51)


def test_a_bus_sends_once_to_all_readers() -> None:
    away = {"a": "d0", "x": "d1", "y": "d2", "b": "d0", "z": "d1"}
    two = graph({"a": 10, "x": 1, "y": 1, "b": 1, "z": 1}, [("a", ["x", "y"]), ("b", ["z"])], star())
    # the bus of d0 carries a's tensor from 10 to 30, then b's
    assert cost(two, "source_bus_multicast", away) == 51
    unlike = Cluster(
        name="unlike",
        devices=star().devices,
        links=tuple(replace(link, latency_ns=35 if link.destination == "d2" else 20) for link in star().links),
    )
    assert cost(replace(two, cluster=unlike), "source_bus_multicast", away) == 10 + 35 + 20 + 1


def test_ready_units_run_in_turn_on_a_multicast_bus() -> None:
    problem = graph({"A": 10, "B": 2, "C": 10}, [("B", ["C"])], pair(3))
    assert cost(problem, "source_bus_multicast", {"A": "d0", "B": "d0", "C": "d1"}) == 25, "A stands before B"


def test_loads_are_compute_and_communication_in_turn() -> None:
    devices = (device("host", "h"), device("d1", "x"), device("d2", "x"))
    links = tuple(
        Link(source=a, destination=b, latency_ns=5, bandwidth_bytes_per_s=1e9)
        for a in ("host", "d1", "d2")
        for b in ("host", "d1", "d2")
        if a != b
    )
    problem = graph({"a": 10, "b": 20, "c": 7}, [("a", ["b", "c"])], Cluster(name="c", devices=devices, links=links))
    problem = replace(problem, tensors=(replace(problem.tensors[0], boundary_ns={"x": 3}),))
    # d1 computes 10 and sends once for 3 + 5; d2 takes in once for 8 and computes 27
    assert cost(problem, "maxload_serial", {"a": "d1", "b": "d2", "c": "d2"}) == 35
    assert cost(problem, "maxload_serial", {"a": "d1", "b": "d2", "c": "host"}) == 28
    assert cost(problem, "maxload_serial", {"a": "host", "b": "host", "c": "host"}) == 37
    out, into = device_prices(problem)
    assert out.tolist() == into.tolist() == [[0, 8, 8]]


@settings(max_examples=150, deadline=None)
@given(examples.placed(examples.rich))
def test_max_load_agrees_with_a_plain_sum(case: tuple[Problem, dict[str, str]]) -> None:
    problem, places = case
    assert cost(problem, "maxload_serial", places) == max_load(problem, places)


def test_a_call_waits_for_all_its_inputs() -> None:
    devices = (device("host", "h"), device("d1", "x"), device("d2", "x"))
    names = ("host", "d1", "d2")
    links = tuple(
        Link(source=a, destination=b, latency_ns=0, bandwidth_bytes_per_s=1e9) for a in names for b in names if a != b
    )
    cluster = Cluster(name="c", devices=devices, links=links)
    problem = graph({"a": 10, "b": 20, "c": 7, "d": 1}, [("a", ["c"]), ("b", ["d"]), ("c", ["d"])], cluster)
    tensors = tuple(replace(tensor, boundary_ns={"x": 3}) for tensor in problem.tensors)
    problem = replace(problem, tensors=tensors)
    # cores of the host never wait for one another, and pay for no communication
    assert cost(problem, "atomic_calls", {"a": "host", "b": "host", "c": "host", "d": "host"}) == 21
    # one call of everything
    assert cost(problem, "atomic_calls", dict.fromkeys("abcd", "d1")) == 38
    # c waits for a only, but its call also holds d, which waits for b: from 20 in (3 + 3), 7 + 1
    assert cost(problem, "atomic_calls", {"a": "host", "b": "host", "c": "d1", "d": "d1"}) == 34
    # d1: a, then a second call for d, from 3 + (10 + 3) on d2's way back
    assert cost(problem, "atomic_calls", {"a": "d1", "b": "host", "c": "d2", "d": "d1"}) == 13 + 13 + 3 + 3 + 1
    waiting = graph({"a1": 1, "b1": 1, "a2": 1, "b2": 1}, [("a1", ["b1"]), ("b2", ["a2"])], cluster)
    with pytest.raises(PlacementError, match="the calls of d1, d2 wait for one another"):
        cost(waiting, "atomic_calls", {"a1": "d1", "a2": "d1", "b1": "d2", "b2": "d2"})


def test_a_stage_on_replicas() -> None:
    problem = graph({"a": 10, "b": 30}, [("a", ["b"])], star(devices=4))
    units = tuple(replace(unit, weights=(f"w{unit.name}",)) for unit in problem.units)
    problem = replace(problem, units=units, weights={"wa": 6, "wb": 6}, replication=True, profile="pipedream_stage")
    # 30 ns of compute and 4 · 2/3 · 6 bytes at a byte per ns, over three
    found = simulate(
        problem, placement_of(problem, Solution(device={"a": "d0", "b": "d1"}, replicas={"d1": ("d2", "d3")}))
    )
    assert found.value == stage_ns(30, 6, 3, slowest_bandwidth(problem, [1, 2, 3])) == Fraction(46, 3)
    assert found.cost_ns == 16
    assert found.peak_bytes.tolist() == [6, 6, 6, 6]
    apart = replace(problem, cluster=replace(problem.cluster, links=()))
    with pytest.raises(PlacementError, match="replicas 'd0' and 'd1' have no route"):
        slowest_bandwidth(apart, [0, 1])


@pytest.mark.parametrize("name", ["maxload_serial", "atomic_calls", "pipedream_stage"])
@settings(max_examples=40, deadline=None)
@given(case=examples.placed(examples.rich))
def test_many_at_once_cost_the_same(name: str, case: tuple[Problem, dict[str, str]]) -> None:
    problem, places = case
    problem = replace(problem, profile=name)
    placement = placement_of(problem, Solution(device=places))
    table = np.stack([placement.device, np.zeros_like(placement.device)])
    costs = simulate_many(problem, table, enforce_memory=False)
    for row, found in zip(table, costs.tolist(), strict=True):
        try:
            schedule = simulate(problem, Placement(device=row))
        except PlacementError:
            assert found == INVALID_COST
            continue
        assert found == schedule.cost_ns
        assert summed_bytes(problem, row[None, :])[0].tolist() == schedule.peak_bytes.tolist()


def test_a_unit_that_cannot_run_is_named() -> None:
    problem = graph({"a": 1}, [], Cluster(name="two", devices=(device("d0", "x"), device("d1", "y"))))
    problem = replace(problem, units=(replace(problem.units[0], exec_ns={"x": 1}),), profile="maxload_serial")
    with pytest.raises(PlacementError, match="device 'd1' cannot run unit 'a'"):
        check_supported(problem, np.array([1]))
    assert unsupported(problem, np.array([[0], [1]])).tolist() == [False, True]
    assert simulate_many(problem, np.array([[0], [1]])).tolist() == [1, INVALID_COST]
