"""Objectives: throughput against a sample-by-sample reference, money, contiguity, stashed memory."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.compiled_module import CompiledModule
from tests.leaderboards.examples import device, graph, pair, star
from tests.leaderboards.reference_loads import is_contiguous, stashed, throughput

from opmark.core.errors import ContentError, PlacementError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.contiguity import contiguous_rows, returning_unit
from opmark.leaderboards.problem.placement import Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.objective import OBJECTIVES, UNITS, format_cost, in_unit
from opmark.leaderboards.problem.rules.profile import OPSIM1, profile_named
from opmark.leaderboards.problem.rules.synchronisation import SYNCHRONISATIONS
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.memory import stashed_bytes, stashed_rows
from opmark.leaderboards.simulator.objectives.cost import price
from opmark.leaderboards.simulator.simulate import simulate, simulate_many
from opmark.leaderboards.simulator.steady_state import server_loads


def test_a_pipeline_is_as_fast_as_its_busiest_server() -> None:
    problem = replace(graph({"a": 10, "b": 30, "c": 5}, [("a", ["b"]), ("b", ["c"])], pair(20)), objective="throughput")
    split = evaluate(problem, Solution(device={"a": "d0", "b": "d1", "c": "d1"}))
    assert (split.cost, split.schedule.latency_ns) == (35, 65)
    slow_link = replace(problem, cluster=pair(50))
    assert evaluate(slow_link, Solution(device={"a": "d0", "b": "d1", "c": "d1"})).cost == 50
    one_wire = replace(problem, cluster=pair(20, port="wire"))
    assert evaluate(one_wire, Solution(device={"a": "d0", "b": "d1", "c": "d0"})).cost == 40, "there and back"
    two_slots = replace(problem, cluster=Cluster(name="one", devices=(device("d0", slots=2),)))
    found = evaluate(two_slots, Solution(device=dict.fromkeys("abc", "d0")))
    assert (found.cost, found.schedule.value) == (23, Fraction(45, 2))


def test_compiled_loads_of_one_row() -> None:
    problem = graph({"a": 10, "b": 30}, [("a", ["b"])], pair(20))
    row = np.array([0, 1])
    assert simulate_many(replace(problem, objective="throughput"), row[None, :]).tolist() == [30]
    assert CompiledModule("opmark.leaderboards.simulator.loads").sum_rows(*problem.arrays.packed, row).tolist() == [
        0,
        0,
    ]
    assert CompiledModule("opmark.leaderboards.simulator.engine").INVALID == INVALID_COST


def test_replicas_take_turns() -> None:
    problem = replace(
        graph({"a": 10, "b": 30}, [("a", ["b"])], star(4, devices=3)), objective="throughput", replication=True
    )
    assert evaluate(problem, Solution(device={"a": "d0", "b": "d1"}, replicas={"d1": ("d2",)})).cost == 15
    with pytest.raises(PlacementError, match="allows no replicas"):
        evaluate(replace(problem, replication=False), Solution(device={"a": "d0", "b": "d1"}, replicas={"d1": ("d2",)}))
    for replicas, reason in (
        ({"d1": ("d0",)}, "has units already"),
        ({"d2": ("d1",)}, "holds no unit of its own"),
        ({"d1": ("moon",)}, "no device of the cluster"),
    ):
        with pytest.raises(PlacementError, match=reason):
            evaluate(problem, Solution(device={"a": "d0", "b": "d1"}, replicas=replicas))


@settings(max_examples=150, deadline=None)
@given(examples.placed(examples.rich), st.data())
def test_throughput_agrees_with_a_count_of_samples(case: tuple[Problem, dict[str, str]], data: st.DataObject) -> None:
    problem, places = case
    problem = replace(problem, objective="throughput", replication=True, synchronisation=data.draw(methods()))
    free = [d.name for d in problem.cluster.devices if d.name not in places.values()]
    replicas = {}
    for primary in sorted({*places.values()}):
        own = [unit for unit in problem.units if places[unit.name] == primary]
        able = [d.name for d in problem.cluster.devices if all(d.type in unit.exec_ns for unit in own)]
        chosen = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
        chosen = [name for name in chosen if name in able]
        if chosen:
            replicas[primary] = tuple(chosen)
            free = [name for name in free if name not in chosen]
    profile = data.draw(st.sampled_from(["opsim1", "contention_free"]))
    placement = placement_of(problem, Solution(device=places, replicas=replicas))
    found = simulate(problem, placement, profile_named(profile))
    rounds = SYNCHRONISATIONS.load(problem.synchronisation).rounds
    slow = throughput(problem, places, replicas, profile, rounds)
    assert found.value == slow
    assert found.cost_ns == math.ceil(slow)
    assert server_loads(problem, placement, profile_named(profile)).bottleneck_ns == slow
    if not replicas:
        many = simulate_many(problem, placement.device[None, :], profile=profile_named(profile), enforce_memory=False)
        assert many.tolist() == [found.cost_ns]


def methods() -> st.SearchStrategy[str]:
    return st.sampled_from(SYNCHRONISATIONS.names())


@settings(max_examples=100, deadline=None)
@given(examples.placed(examples.rich), st.integers(0, 3))
def test_stashed_memory(case: tuple[Problem, dict[str, str]], micro_batches: int) -> None:
    problem, places = case
    problem = replace(problem, objective="throughput", memory_mode="stash", micro_batches=micro_batches)
    placement = placement_of(problem, Solution(device=places))
    expected = list(stashed(problem, places).values())
    assert stashed_bytes(problem, placement).tolist() == expected
    assert stashed_rows(problem, placement.device[None, :]).tolist() == [expected]
    assert simulate(problem, placement).peak_bytes.tolist() == expected


def test_a_stage_keeps_as_many_samples_as_there_are_stages_behind_it() -> None:
    problem = graph(dict.fromkeys("abc", 1), [("a", ["b"]), ("b", ["c"])], star())
    tensors = tuple(replace(tensor, size_bytes=10) for tensor in problem.tensors)
    problem = replace(problem, tensors=tensors, memory_mode="stash", objective="throughput", replication=True)
    chain = evaluate(problem, Solution(device={"a": "d0", "b": "d1", "c": "d2"}))
    assert chain.schedule.peak_bytes.tolist() == [30, 40, 10]  # 3 of a's; 2 of a's and b's; 1 of b's
    doubled = evaluate(problem, Solution(device={"a": "d0", "b": "d0", "c": "d1"}, replicas={"d0": ("d2",)}))
    assert doubled.schedule.peak_bytes.tolist() == [40, 10, 40]  # three workers in all, by turns of two


@settings(max_examples=60, deadline=None)
@given(examples.problems(max_units=5))
def test_contiguity_is_what_walking_every_path_finds(problem: Problem) -> None:
    names = [d.name for d in problem.cluster.devices]
    table = np.array(list(product(range(len(names)), repeat=len(problem.units)))[:200])
    expected = [
        is_contiguous(problem, {unit.name: names[d] for unit, d in zip(problem.units, row, strict=True)})
        for row in table.tolist()
    ]
    assert contiguous_rows(problem, table).tolist() == expected
    assert [returning_unit(problem, row) is None for row in table] == expected


def test_a_path_that_returns_is_named() -> None:
    problem = replace(graph(dict.fromkeys("abc", 1), [("a", ["b"]), ("b", ["c"])], pair()), contiguous=True)
    with pytest.raises(PlacementError, match="a path leaves device 'd0' and returns to it from 'b' to 'c'"):
        evaluate(problem, Solution(device={"a": "d0", "b": "d1", "c": "d0"}))
    assert simulate_many(problem, np.array([[0, 1, 0], [0, 0, 1]])).tolist() == [INVALID_COST, 23]


def test_money_is_price_times_time() -> None:
    devices = (device("d0", price_per_hour=3.6), device("d1", price_per_hour=36.0))
    problem = graph({"a": 10**9, "b": 10**9}, [("a", ["b"])], replace(pair(), devices=devices))
    problem = replace(problem, objective="cost", unit="$")
    alone = evaluate(problem, Solution(device={"a": "d0", "b": "d0"}))
    assert alone.value("$") == pytest.approx(2 * 0.001)
    both = evaluate(problem, Solution(device={"a": "d0", "b": "d1"}))
    assert both.value("$") == pytest.approx(2 * 0.011)
    assert simulate_many(problem, np.array([[0, 0], [0, 1]])).tolist() == [alone.cost, both.cost]
    assert price(problem, {0, 1}, 2 * 10**9 + 20) == both.cost
    with pytest.raises(ContentError, match=r"unit: one of \$"):
        checked(replace(problem, unit="ms"), "x")


def test_costs_in_other_units() -> None:
    assert in_unit(1500, "ns") == 1500
    assert in_unit(Fraction(3, 2), "us") == 0.0015
    assert in_unit(UNITS["s"], "s") == 1.0
    assert format_cost(2_500_000, "ms") == "2.50 ms"
    assert format_cost(UNITS["$"] // 100, "$") == "$0.01"


def test_every_objective_says_what_it_is() -> None:
    assert OBJECTIVES.names() == ("cost", "hypervolume", "latency", "rent", "serving", "throughput")
    assert all(objective.summary for objective in OBJECTIVES)
    assert OPSIM1.model is None


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 1000), methods())
def test_a_synchronisation_brings_everything_everywhere(replicas: int, size: int, name: str) -> None:
    rounds = SYNCHRONISATIONS.load(name).rounds(replicas, size)
    knows = [{number} for number in range(replicas)]
    for messages in rounds:
        now = [set(known) for known in knows]
        for source, destination, message in messages:
            assert source != destination
            assert 0 <= message <= size
            now[destination] |= knows[source]
        knows = now
    assert all(known == set(range(replicas)) for known in knows)
    if name == "ring-all-reduce" and replicas > 1:
        sent = sum(message for messages in rounds for source, _, message in messages if source == 0)
        assert 2 * (replicas - 1) * size / replicas <= sent <= 2 * (replicas - 1) * (size / replicas + 1)
    assume(name != "broadcast" or replicas > 1)
    assert bool(rounds) == (replicas > 1)
