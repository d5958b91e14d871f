"""Compiled list scheduling against the plain Python one, start for start."""

import pytest
from hypothesis import given, settings
from tests.leaderboards import examples
from tests.leaderboards.reference_schedule import reference_heft

from opmark.leaderboards.placers.heft import heft_schedule
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.rules.profile import profile_named
from opmark.leaderboards.search.lists.list_schedule import schedule_by_earliest_start
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


@settings(max_examples=150, deadline=None)
@given(problem=examples.problems(max_units=10).map(examples.without_own_copies))
def test_earliest_first_runs_everything_when_it_can(problem: Problem) -> None:
    built = schedule_by_earliest_start(problem, problem.arrays.default_priority, contention=False)
    assert (built.device >= 0).all()
    found = simulate(problem, built.placement(), profile_named("contention_free"))
    assert (found.unit_start_ns <= built.start_ns).all()
