"""Bounds from above and below: the integer program against every placement, and response times of any placement."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.bounds.test_memory_rows import with_memory
from tests.leaderboards.examples import device, graph, pair, star

from opmark.core.errors import PlacementError
from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.response_time import response_time_ns
from opmark.leaderboards.bounds.solver_bound import is_excluded, solver_bound
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import simulate, simulate_many


def test_what_an_integer_program_sees() -> None:
    three = graph(dict.fromkeys("abc", 10), [], pair())
    assert bounds(three)["area"] == 14
    assert bounds(three, solver_s=10)["solver"] == pytest.approx(20, abs=1), "units are whole"
    # two of them must cross, or wait for one another
    chain = graph({"a": 10, "b": 10, "c": 10, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(3))
    assert bounds(chain)["critical_path"] == 30
    assert solver_bound(chain, seconds=10) == pytest.approx(33, abs=1)
    split = replace(chain, profile="maxload_serial", objective="throughput")
    assert solver_bound(split, seconds=10) == pytest.approx(26, abs=1)
    assert solver_bound(replace(chain, objective="cost", unit="$"), seconds=1) is None
    assert solver_bound(replace(chain, replication=True), seconds=1) is None


@settings(max_examples=25, deadline=None)
@given(
    examples.rich(max_units=4),
    st.sampled_from([("latency", "opsim1"), ("throughput", "opsim1"), ("throughput", "maxload_serial")]),
    st.sampled_from([10**6, 50, 30]),
)
def test_no_placement_beats_the_integer_program(problem: Problem, rules: tuple[str, str], memory_bytes: int) -> None:
    problem = replace(with_memory(problem, memory_bytes), objective=rules[0], profile=rules[1])
    try:
        groups = groups_of(problem)
    except PlacementError:
        return
    devices = range(len(problem.cluster.devices))
    table = groups.spread(np.array(list(product(devices, repeat=groups.count))))
    best = int(simulate_many(problem, table).min())
    found = solver_bound(problem, seconds=5)
    if best < INVALID_COST and found is not None:
        assert found <= best
        assert is_excluded(problem, best + 1, seconds=5) is None, "the best answer meets the program"


def test_a_response_time_by_hand() -> None:
    cluster = Cluster(name="one", devices=(device("d0", slots=2),))
    problem = graph({"a": 10, "b": 10, "c": 10, "d": 10}, [("a", ["d"])], cluster)
    placement = placement_of(problem, Solution(device=dict.fromkeys("abcd", "d0")))
    assert response_time_ns(problem, placement) == 30  # 40 on two slots, and half of a and d
    apart = graph({"a": 10, "b": 5}, [("a", ["b"])], star())
    moved = placement_of(apart, Solution(device={"a": "d0", "b": "d1"}))
    assert response_time_ns(apart, moved) == 35
    blocking = replace(apart, cluster=replace(star(), devices=(device("d0", blocking_copy=True), *star().devices[1:])))
    assert response_time_ns(blocking, moved) is None


@settings(max_examples=150, deadline=None)
@given(examples.placed(examples.rich), st.data())
def test_no_schedule_exceeds_its_response_time(case: tuple[Problem, dict[str, str]], data: st.DataObject) -> None:
    problem, places = case
    priority = data.draw(st.none() | st.fixed_dictionaries({name: st.integers(-3, 3) for name in places}))
    placement = placement_of(problem, Solution(device=places, priority=priority))
    bound = response_time_ns(problem, placement)
    if bound is not None:
        assert simulate(problem, placement).latency_ns <= bound
        assert response_time_ns(problem, Placement(device=placement.device)) == bound
