"""Twins: valid problems of about the same cost that share neither names, nor times, nor borders with their original."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples
from tests.leaderboards.examples import heft_canonical, peft_canonical

from opmark.core.errors import PlacementError
from opmark.leaderboards.problem.checks import findings
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.hidden import generator_of
from opmark.leaderboards.search.single import best_single_device
from opmark.leaderboards.submissions.twins import cut_anew, twin, twin_problems


def chain(problem: Problem, interval: tuple[float, float] | None = None) -> Problem:
    """The problem with intervals on every unit."""
    units = tuple(
        replace(unit, interval=dict.fromkeys(unit.exec_ns, interval), kind=unit.name[:1], shape_group=unit.name)
        for unit in problem.units
    )
    return replace(problem, units=units) if interval else problem


def test_a_seed_decides_the_twins() -> None:
    problems = (heft_canonical(), peft_canonical())
    first, again, other = (twin_problems(problems, seed) for seed in ("a", "a", "b"))
    assert first == again
    assert [problem.name for problem in first] == ["twin-1", "twin-2"]
    assert not {problem.id for problem in first} & {problem.id for problem in other}


def test_times_are_drawn_within_the_error_and_names_are_new() -> None:
    problem = chain(heft_canonical(), (0.5, 2.0))
    found = twin(problem, "x", generator_of("s"))
    assert not {unit.name for unit in found.units} & {unit.name for unit in problem.units}
    assert {bool(unit.interval) for unit in found.units} == {False}
    before = sum(sum(unit.exec_ns.values()) for unit in problem.units)
    after = sum(sum(unit.exec_ns.values()) for unit in found.units)
    assert 0.3 < after / before < 3
    assert after != before
    assert Counter(round(value, 3) for unit in found.units for value in unit.exec_ns.values()) != Counter(
        round(value, 3) for unit in problem.units for value in unit.exec_ns.values()
    )


@given(problem=examples.problems(max_units=12), seed=st.text(max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_twin_is_a_valid_problem(problem: Problem, seed: str) -> None:
    found = twin(problem, "x", generator_of(seed))
    assert findings(found) == []
    assert len(found.units) <= len(problem.units)
    assert found.reference is None
    try:
        _, single = best_single_device(problem)
        _, own = best_single_device(found)
    except PlacementError:
        return  # memory limits may leave no single device
    assert 0.2 <= (own + 1) / (single + 1) <= 5


@given(problem=examples.problems(max_units=12), seed=st.text(max_size=4))
@settings(deadline=None, max_examples=40)
def test_cutting_anew_keeps_work_and_outputs(problem: Problem, seed: str) -> None:
    found = cut_anew(problem, generator_of(seed))
    assert findings(found) == []
    for kind in {name for unit in problem.units for name in unit.exec_ns}:
        if all(kind in unit.exec_ns for unit in problem.units):
            total = sum(unit.exec_ns[kind] for unit in problem.units)
            assert sum(unit.exec_ns[kind] for unit in found.units) == pytest.approx(total)
    held = [
        sum(one.weights[name] for name in {name for unit in one.units for name in unit.weights})
        for one in (problem, found)
    ]
    assert held[0] == held[1]
    assert [t.name for t in found.tensors if t.output] == [t.name for t in problem.tensors if t.output]
