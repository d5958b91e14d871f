"""The constraint program itself: every schedule of the simulator is one of its solutions, on any grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from tests.leaderboards import examples

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.bounds.windows import windows_of
from opmark.leaderboards.problem.placement import Placement, Solution, placement_of
from opmark.leaderboards.simulator.simulate import fits, simulate

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="OR-tools is not installed (extra solvers)")


@settings(max_examples=30, deadline=None)
@given(examples.placed(max_units=5))
def test_a_simulated_placement_is_a_solution_that_costs_no_more(case) -> None:
    problem, places = case
    try:
        placement: Placement = placement_of(problem, Solution(device=places))
        schedule = simulate(problem, placement)
    except PlacementError:
        return
    if not fits(problem, schedule):
        return
    for grid_ns in (1, 7):
        model = IntervalModel(
            problem,
            cp_model,
            contention=True,
            grid_ns=grid_ns,
            limit_ns=schedule.cost_ns,
            windows=windows_of(problem),
        )
        assert model.build(np.inf)
        for members, row in zip(model.groups.members, model.on, strict=True):
            model.model.add(row[int(placement.device[members[0]])] == 1)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(model.model) == cp_model.OPTIMAL
        assert solver.objective_value * grid_ns <= schedule.cost_ns
