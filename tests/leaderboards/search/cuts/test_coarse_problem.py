"""Coarse problems: without cycles, as costly as the whole, and with every part's phase."""

import numpy as np
import pytest
from tests.contracts.test_placers import branchy, training
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.coarse_problem import coarse_problem, stretches


def test_neighbours_with_the_least_work_are_joined_first() -> None:
    both = np.array([True, True])
    assert stretches([5.0, 1.0, 1.0, 5.0], [both] * 4, 3) == [0, 1, 1, 3]
    apart = [np.array([True, False]), np.array([False, True])]
    assert stretches([1.0, 1.0], apart, 1) == [0, 1], "no device could run both"


@pytest.mark.parametrize("problem", [branchy(blocks=6), training(12)], ids=["branchy", "training"])
def test_parts_never_wait_for_each_other_and_cost_what_the_whole_costs(problem: Problem) -> None:
    coarse = coarse_problem(problem, 9)
    assert coarse.problem.arrays.units < problem.arrays.units
    assert len(coarse.problem.arrays.topological) == coarse.problem.arrays.units, "there is no cycle"
    for unit, part in zip(problem.units, coarse.of_unit.tolist(), strict=True):
        assert coarse.problem.units[part].phase == unit.phase
    dispatch = problem.arrays.device_dispatch_ns
    whole, parts = (one.arrays.run_ns - dispatch * (one.arrays.run_ns > 0) for one in (problem, coarse.problem))
    fast = 1  # the one device that runs everything
    saved = dispatch[fast] * (problem.arrays.units - coarse.problem.arrays.units)
    assert 0 <= parts[:, fast].sum() - whole[:, fast].sum() <= saved, "dispatch is paid once a unit"


def test_a_small_problem_stays_as_it_is() -> None:
    problem = branchy()
    assert coarse_problem(problem, 200).problem is problem


def test_tensors_that_go_the_same_way_become_one() -> None:
    problem = graph({"a": 1, "b": 1, "c": 9}, [("a", ["c"]), ("b", ["c"])], pair())
    coarse = coarse_problem(problem, 2)
    assert coarse.of_unit.tolist() == [0, 0, 1]
    assert [(one.producer, one.consumers) for one in coarse.problem.tensors] == [("part 0", ("part 1",))]
