"""The simulator against cases worked by hand and against the plain reference."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair, star
from tests.leaderboards.reference import Reference

from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import Cluster, Link
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import OPSIM1, profile_named
from opmark.leaderboards.problem.schedule import INVALID_COST, Schedule
from opmark.leaderboards.simulator.simulate import simulate, simulate_many


def run(problem: Problem, places: dict[str, str], profile=OPSIM1, **facts) -> Schedule:
    return simulate(problem, placement_of(problem, Solution(device=places, **facts)), profile)


def cost(problem: Problem, places: dict[str, str], **facts) -> int:
    return run(problem, places, **facts).cost_ns


def test_a_tensor_goes_once_to_each_device() -> None:
    times, places = {"op0": 10, "op1": 1, "op2": 1}, {"op0": "d0", "op1": "d1", "op2": "d1"}
    assert cost(graph(times, [("op0", ["op1", "op2"])], pair()), places) == 32
    assert cost(graph(times, [("op0", ["op1"])], pair()), places) == 31
    separate = graph(times, [("op0", ["op1"])], pair())
    second = Tensor(name="second", size_bytes=0, producer="op0", consumers=("op2",))
    assert cost(replace(separate, tensors=(*separate.tensors, second)), places) == 51


def test_a_link_serves_one_transfer_at_a_time() -> None:
    problem = graph({"a": 10, "b": 1, "x": 1, "y": 1}, [("a", ["x"]), ("b", ["y"])], pair())
    places = {"a": "d0", "b": "d0", "x": "d1", "y": "d1"}
    assert cost(problem, places, priority={"a": 2, "b": 1, "x": 0, "y": 0}) == 51
    free = run(problem, places, profile_named("contention_free"), priority={"a": 2, "b": 1, "x": 0, "y": 0})
    assert free.cost_ns == 32


@pytest.mark.parametrize(("port", "expected"), [("", 31), ("wire", 51)])
def test_directions_share_a_named_port(port: str, expected: int) -> None:
    problem = graph({"a": 10, "b": 10, "x": 1, "y": 1}, [("a", ["x"]), ("b", ["y"])], pair(port=port))
    assert cost(problem, {"a": "d0", "b": "d1", "x": "d1", "y": "d0"}) == expected


def test_a_broadcast_uses_both_links_at_once() -> None:
    problem = graph({"a": 10, "x": 1, "y": 1}, [("a", ["x", "y"])], star())
    assert cost(problem, {"a": "d0", "x": "d1", "y": "d2"}) == 31


def test_priority_decides_among_ready_units() -> None:
    problem = graph({"A": 10, "B": 2, "C": 10}, [("B", ["C"])], pair(3))
    places = {"A": "d0", "B": "d0", "C": "d1"}
    assert cost(problem, places, priority={"A": 1, "B": 0, "C": 0}) == 25
    assert cost(problem, places) == 15, "the default is the upward rank"
    assert cost(problem, places, order={"d0": ("A", "B")}) == 25


def test_a_strict_order_waits() -> None:
    problem = graph({"A": 10, "B": 5, "C": 1}, [("A", ["B"])], pair(3))
    places = {"A": "d1", "B": "d0", "C": "d0"}
    assert run(problem, places).unit_start_ns.tolist() == [0, 13, 0]
    assert run(problem, places, order={"d0": ("B", "C")}).unit_start_ns.tolist() == [0, 13, 18]


def test_the_canonical_heft_schedule() -> None:
    problem = examples.heft_canonical()
    order = {"P1": ("T2", "T8"), "P2": ("T4", "T6", "T9", "T10"), "P3": ("T1", "T3", "T5", "T7")}
    places = {unit: name for name, units in order.items() for unit in units}
    schedule = run(problem, places, profile_named("contention_free"), order=order)
    assert schedule.cost_ns == 80
    assert schedule.unit_start_ns.tolist() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
    assert schedule.unit_end_ns.tolist() == [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]


def test_slots_run_side_by_side_and_dispatch_is_paid() -> None:
    cluster = Cluster(name="one", devices=(device("d0", slots=2, dispatch_ns=5),))
    problem = graph({"a": 10, "b": 10, "c": 10, "free": 0}, [], cluster)
    assert cost(problem, dict.fromkeys(("a", "b", "c", "free"), "d0")) == 30


def test_a_blocking_copy_holds_both_ends() -> None:
    cluster = pair()
    blocking = replace(cluster, devices=(cluster.devices[0], device("d1", blocking_copy=True)))
    problem = graph({"a": 10, "x": 1, "other": 12}, [("a", ["x"])], cluster)
    places = {"a": "d0", "x": "d1", "other": "d1"}
    assert cost(problem, places) == 31
    # the copy waits for `other`, then holds d1
    assert cost(replace(problem, cluster=blocking), places) == 33


def test_a_device_that_copies_by_itself_is_held_where_a_tensor_arrives() -> None:
    cluster = pair()
    problem = graph({"a": 10, "b": 5, "x": 1, "other": 12}, [("a", ["x"])], cluster)
    problem = replace(problem, tensors=tuple(replace(tensor, boundary_ns={"x": 3}) for tensor in problem.tensors))
    places = {"a": "d0", "b": "d0", "x": "d1", "other": "d1"}
    order = {"d0": ("a", "b"), "d1": ("other", "x")}
    # 10, then 3 + 20 + 3 on the way beside `other`, then 1
    assert cost(problem, places, order=order) == 37
    own = tuple(replace(one, own_copies=True) for one in cluster.devices)
    schedule = run(replace(problem, cluster=replace(cluster, devices=own)), places, order=order)
    # a hands over for 3 before b begins; `other` ends at 12, so the transfer waits for nothing: 13, then 20 + 3 and 1
    assert schedule.unit_end_ns.tolist() == [13, 18, 37, 12]
    late = graph({"a": 10, "x": 1, "other": 30}, [("a", ["x"])], replace(cluster, devices=own))
    # the copy holds d1, so it begins after `other`, while d0 goes on
    assert run(late, {"a": "d0", "x": "d1", "other": "d1"}).hop_start_ns.tolist() == [30]


def test_two_hops_are_stored_and_forwarded() -> None:
    links = tuple(
        Link(source=a, destination=b, latency_ns=20, bandwidth_bytes_per_s=1e9)
        for a, b in (("d0", "hub"), ("hub", "d1"))
    )
    cluster = Cluster(name="hub", devices=(device("d0"), device("hub"), device("d1")), links=links)
    problem = graph({"a": 10, "b": 5, "x": 1, "y": 1}, [("a", ["x"]), ("b", ["y"])], cluster)
    schedule = run(problem, {"a": "d0", "b": "d0", "x": "d1", "y": "d1"})
    # b follows a at 15; the first link is busy until 30 and again until 50, the second until 70
    assert schedule.cost_ns == 71
    assert schedule.hop_start_ns.tolist() == [10, 30, 30, 50]


def test_inputs_leave_the_host_and_outputs_return() -> None:
    cluster = replace(pair(), host="d0")
    problem = graph({"a": 5}, [], cluster)
    tensors = (
        Tensor(name="in", size_bytes=100, consumers=("a",)),
        Tensor(name="out", size_bytes=10, producer="a", output=True),
    )
    problem = replace(problem, tensors=tensors)
    assert cost(problem, {"a": "d0"}) == 5
    assert cost(problem, {"a": "d1"}) == 120 + 5 + 30


def test_a_cut_edge_pays_its_boundary_on_both_sides() -> None:
    cluster = pair()
    unequal = replace(cluster, devices=(device("d0", "x"), device("d1", "y")))
    problem = graph({"a": 10, "b": 1}, [("a", ["b"])], unequal)
    cut = replace(problem, tensors=(replace(problem.tensors[0], boundary_ns={"x": 3, "y": 4.5}),))
    assert cost(cut, {"a": "d0", "b": "d1"}) == 10 + 20 + 3 + 4 + 1
    assert cost(cut, {"a": "d0", "b": "d0"}) == 11


def test_memory_follows_the_life_of_each_buffer() -> None:
    cluster = pair()
    units = (
        Unit(name="a", exec_ns={"x": 10}, weights=("w",), workspace_bytes=1000),
        Unit(name="b", exec_ns={"x": 10}, weights=("w",)),
        Unit(name="c", exec_ns={"x": 10}),
    )
    tensors = (
        Tensor(name="ab", size_bytes=100, producer="a", consumers=("b", "c")),
        Tensor(name="bc", size_bytes=50, producer="b", consumers=("c",)),
    )
    problem = Problem(name="memory", cluster=cluster, units=units, tensors=tensors, weights={"w": 7})
    alone = run(problem, dict.fromkeys("abc", "d0"))
    assert alone.peak_bytes.tolist() == [7 + 1100, 0]
    split = run(problem, {"a": "d0", "b": "d0", "c": "d1"})
    assert split.peak_bytes.tolist() == [7 + 1100, 150]
    summed = run(replace(problem, memory_mode="sum"), dict.fromkeys("abc", "d0"))
    assert summed.peak_bytes.tolist() == [7 + 1150, 0]


def test_a_device_that_cannot_run_a_unit_is_named() -> None:
    problem = graph({"a": 1}, [], Cluster(name="two", devices=(device("d0", "x"), device("d1", "y"))))
    problem = replace(problem, units=(Unit(name="a", exec_ns={"x": 1}),))
    with pytest.raises(PlacementError, match="device 'd1' cannot run unit 'a'"):
        simulate(problem, Placement(device=np.array([1])))


def test_a_missing_route_is_named() -> None:
    problem = graph({"a": 1, "b": 1}, [("a", ["b"])], Cluster(name="apart", devices=(device("d0"), device("d1"))))
    with pytest.raises(PlacementError, match=r"no route brings tensor 'a\.out' to device 'd1'"):
        run(problem, {"a": "d0", "b": "d1"})


EVENT_PROFILES = ["opsim1", "contention_free", "half_duplex_port", "source_bus_multicast"]


@settings(max_examples=300, deadline=None)
@given(examples.placed(examples.rich), st.data())
def test_the_reference_agrees(case: tuple[Problem, dict[str, str]], data: st.DataObject) -> None:
    problem, places = case
    names = list(places)
    priority = data.draw(st.none() | st.fixed_dictionaries({name: st.integers(-3, 3) for name in names}))
    profile = data.draw(st.sampled_from(EVENT_PROFILES))
    order = None
    if data.draw(st.booleans()):
        # units are numbered in topological order, so this never deadlocks
        order = {name: tuple(unit for unit in names if places[unit] == name) for name in {*places.values()}}
    found = run(problem, places, profile_named(profile), priority=priority, order=order)
    slow = Reference(problem, places, priority, order, profile)
    assert found.cost_ns == slow.cost
    assert dict(zip(names, found.unit_start_ns.tolist(), strict=True)) == slow.start
    assert dict(zip(names, found.unit_end_ns.tolist(), strict=True)) == slow.end
    assert sorted(zip(found.hop_start_ns.tolist(), found.hop_end_ns.tolist(), strict=True)) == sorted(
        slow.hops.values()
    )
    assert found.peak_bytes.tolist() == list(slow.peak.values())


@settings(max_examples=60, deadline=None)
@given(examples.placed(), st.data())
def test_many_at_once_cost_the_same(case: tuple[Problem, dict[str, str]], data: st.DataObject) -> None:
    problem, places = case
    placement = placement_of(problem, Solution(device=places))
    count = len(problem.cluster.devices)
    others = data.draw(
        st.lists(st.lists(st.integers(0, count - 1), min_size=len(places), max_size=len(places)), max_size=4)
    )
    table = np.array([placement.device.tolist(), *others, placement.device.tolist()])
    costs = simulate_many(problem, table)
    for row, found in zip(table, costs.tolist(), strict=True):
        try:
            schedule = simulate(problem, Placement(device=row))
        except PlacementError:
            assert found == INVALID_COST
            continue
        fits = (schedule.peak_bytes <= problem.arrays.device_memory_bytes).all()
        assert found == (schedule.cost_ns if fits else INVALID_COST)


def test_each_row_may_have_its_own_priority() -> None:
    problem = graph({"A": 10, "B": 2, "C": 10}, [("B", ["C"])], pair(3))
    table = np.array([[0, 0, 1], [0, 0, 1]])
    assert simulate_many(problem, table, np.array([[1, 0, 0], [0, 1, 0]])).tolist() == [25, 15]


def test_a_placement_that_does_not_fit_costs_nothing_finite() -> None:
    problem = graph({"a": 1}, [], pair())
    problem = replace(problem, units=(replace(problem.units[0], workspace_bytes=2 * examples.GIB),))
    assert simulate_many(problem, np.array([[0]])).tolist() == [INVALID_COST]
    assert simulate_many(problem, np.array([[0]]), enforce_memory=False).tolist() == [1]
