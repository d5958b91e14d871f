"""Compiled list scheduling against the plain Python one, start for start."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.reference_schedule import ListSchedule, reference_heft
from tests.leaderboards.reference_schedule import mean_travel_ns as plain_mean_travel_ns

from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.lists.list_schedule import (
    NEVER_NS,
    build_earliest_first,
    mean_travel_ns,
    ready_sequence,
    return_ns,
    travel_ns,
)
from opmark.leaderboards.simulator.simulate import simulate


def can_be_placed(problem: Problem) -> bool:
    from opmark.core.errors import PlacementError
    from opmark.leaderboards.search.groups import groups_of

    try:
        groups_of(problem)
    except PlacementError:
        return False
    return True


@pytest.mark.parametrize("contention", [True, False])
@settings(max_examples=150, deadline=None)
@given(problem=examples.rich(max_units=12))
def test_compiled_heft_is_the_plain_one(problem: Problem, contention: bool) -> None:
    if not can_be_placed(problem):
        return
    plain = reference_heft(problem, contention=contention)
    compiled, _ = heft_schedule(problem, contention=contention)
    assert compiled.device.tolist() == plain.device
    assert compiled.start_ns.tolist() == plain.start_ns
    assert compiled.end_ns.tolist() == plain.end_ns


@settings(max_examples=100, deadline=None)
@given(problem=examples.problems(max_units=8))
def test_travel_is_that_of_the_plain_schedule(problem: Problem) -> None:
    plain = ListSchedule(problem)
    assert mean_travel_ns(problem).tolist() == plain_mean_travel_ns(plain).tolist()
    devices = range(problem.arrays.devices)
    found, home = travel_ns(problem), return_ns(problem)
    for tensor in range(len(problem.tensors)):
        for a in devices:
            assert [plain.travel_ns(tensor, a, b) for b in devices] == np.minimum(found[tensor, a], NEVER_NS).tolist()
    for unit in range(len(problem.units)):
        assert home[unit].tolist() == [plain.return_ns(unit, device) for device in devices]


@settings(max_examples=150, deadline=None)
@given(problem=examples.problems(max_units=10))
def test_earliest_first_runs_everything_when_it_can(problem: Problem) -> None:
    built = build_earliest_first(problem, problem.arrays.default_priority, contention=False)
    assert (built.device >= 0).all()
    found = simulate(problem, built.placement(), profile_named("contention_free"))
    assert (found.unit_start_ns <= built.start_ns).all()


def test_a_ready_queue_gives_out_the_largest_priority_first() -> None:
    problem = examples.graph(dict.fromkeys("abcd", 1), [("a", ["c"]), ("b", ["d"])], examples.pair())
    assert ready_sequence(problem, np.array([5, 1, 9, 3])).tolist() == [0, 2, 1, 3]
