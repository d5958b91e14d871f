"""Lower bounds: worked values, and never above what any placement costs."""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.examples import device, graph, star

from opmark.core.hardware.cluster import Cluster
from opmark.leaderboards.bounds.bounds import bounds, lower_bound
from opmark.leaderboards.bounds.relaxations.area import area
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import simulate_many


def test_worked_bounds() -> None:
    found = bounds(examples.heft_canonical())
    assert found["critical_path"] == 9 + 13 + 12 + 7  # T1, T2, T9 and T10, each on its fastest processor
    even = graph(dict.fromkeys("abcdef", 10), [], star())
    assert bounds(even) == {"critical_path": 10, "area": 19, "largest_class": 10}  # 20, less the solver's tolerance
    tied = replace(even, units=tuple(replace(unit, colocation="k") for unit in even.units))
    assert bounds(tied)["largest_class"] == 60
    two_slots = replace(tied, cluster=Cluster(name="one", devices=(device("d0", slots=2),)))
    assert bounds(two_slots)["largest_class"] == 30


def test_memory_that_only_the_slow_device_has_counts() -> None:
    devices = (device("fast", "f", memory_bytes=100), device("slow", "s", memory_bytes=10_000))
    problem = graph({"a": 10, "b": 10}, [], Cluster(name="tight", devices=devices))
    units = tuple(replace(u, exec_ns={"f": 10, "s": 1000}, weights=(f"w{u.name}",)) for u in problem.units)
    roomy = replace(problem, units=units, weights={"wa": 1, "wb": 1})
    tight = replace(problem, units=units, weights={"wa": 100, "wb": 100})
    assert area(roomy, groups_of(roomy)) < 25
    # half of all bytes must go to the slow device
    assert area(tight, groups_of(tight)) > 900


@settings(max_examples=40, deadline=None)
@given(examples.problems(max_units=4))
def test_nothing_beats_a_bound(problem: Problem) -> None:
    devices = range(len(problem.cluster.devices))
    table = np.array(list(product(devices, repeat=len(problem.units))))
    costs = simulate_many(problem, table)
    feasible = costs[costs < INVALID_COST]
    if len(feasible):
        assert lower_bound(problem) <= feasible.min()
