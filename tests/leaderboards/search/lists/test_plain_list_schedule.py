"""The plain list schedule that the compiled one is held against: gaps, slots, classes, memory, travel."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, pair
from tests.leaderboards.reference_schedule import PlainListSchedule, mean_travel_ns

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.simulator.simulate import simulate


def test_a_short_unit_slips_into_a_gap() -> None:
    problem = graph({"a": 10, "b": 10, "late": 5, "short": 8}, [("a", ["late"])], pair(20))
    schedule = PlainListSchedule(problem)
    schedule.put(0, 1)
    schedule.put(2, 0)  # waits for a's tensor: 30 to 35
    schedule.put(1, 0)
    schedule.put(3, 0)
    assert schedule.start_ns == [0, 0, 30, 10]
    assert schedule.placement().order == {0: [1, 3, 2], 1: [0]}


def test_slots_are_separate_lines() -> None:
    problem = graph(dict.fromkeys("abc", 10), [], Cluster(name="one", devices=(device("d0", slots=2),)))
    schedule = PlainListSchedule(problem)
    for unit in range(3):
        schedule.put(unit, 0)
    assert schedule.start_ns == [0, 0, 10]


def test_a_class_stays_where_its_first_unit_went_and_full_devices_are_avoided() -> None:
    problem = graph(dict.fromkeys("abc", 10), [], pair())
    units = tuple(replace(unit, workspace_bytes=600, colocation="k" * (unit.name != "c")) for unit in problem.units)
    small = replace(pair(), devices=tuple(device(name, memory_bytes=1300) for name in ("d0", "d1")))
    schedule = PlainListSchedule(replace(problem, units=units, cluster=small))
    schedule.put(0, 1)
    assert schedule.allowed(1) == [1]
    assert schedule.allowed(2) == [0], "d1 already holds 1200 of 1300 bytes"


def test_travel_is_the_mean_over_ordered_pairs() -> None:
    schedule = PlainListSchedule(examples.heft_canonical())
    assert mean_travel_ns(schedule).tolist() == list(examples.HEFT_EDGES.values())


@settings(max_examples=100, deadline=None)
@given(examples.placed(max_units=7), st.data())
def test_without_contention_the_estimate_is_the_simulated_schedule(
    case: tuple[Problem, dict[str, str]], data: st.DataObject
) -> None:
    from opmark.leaderboards.problem.rules.profile import profile_named

    problem, places = case
    problem = examples.without_own_copies(problem)
    schedule = PlainListSchedule(problem, contention=False)
    names = [item.name for item in problem.cluster.devices]
    for number, unit in enumerate(problem.units):
        schedule.put(number, names.index(places[unit.name]))
    found = simulate(problem, schedule.placement(), profile_named("contention_free"))
    assert all(a <= b for a, b in zip(found.unit_start_ns.tolist(), schedule.start_ns, strict=True))
    if all(item.slots == 1 for item in problem.cluster.devices):
        assert found.unit_end_ns.tolist() == schedule.end_ns
