"""The exact placer where loads count, contiguous or not, against every placement of small problems."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards import examples

from opmark.core.errors import PlacementError
from opmark.leaderboards.bounds.load_constraints import add_contiguity, add_exchange
from opmark.leaderboards.problem.contiguity import contiguous_rows
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.groups import groups_of
from opmark.leaderboards.simulator.simulate import simulate_many

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="the extra `solvers` is not installed")


def least(problem: Problem) -> int | None:
    """The cost of the best of all placements, None where none is valid."""
    devices = range(len(problem.cluster.devices))
    table = np.array(list(product(devices, repeat=len(problem.units))), dtype=np.int64)
    if problem.contiguous:
        table = table[contiguous_rows(problem, table)]
    costs = simulate_many(problem, table) if len(table) else np.array([INVALID_COST])
    return None if costs.min() == INVALID_COST else int(costs.min())


@settings(max_examples=40, deadline=None)
@given(
    examples.problems(max_units=5),
    st.sampled_from([("maxload_serial", False), ("maxload_serial", True), ("opsim1", True)]),
)
def test_cp_sat_finds_the_least_load(problem: Problem, rules: tuple[str, bool]) -> None:
    profile, contiguous = rules
    loads = replace(problem, objective="throughput", profile=profile, contiguous=contiguous, memory_mode="sum")
    try:
        groups_of(loads)
    except PlacementError:
        return
    best = least(loads)
    if best is not None:
        assert attempt(loads, "cp-sat", budget_s=30).evaluation.cost == best


@settings(max_examples=20, deadline=None)
@given(examples.problems(max_units=4))
def test_contiguity_forbids_exactly_what_returns(problem: Problem) -> None:
    devices = range(len(problem.cluster.devices))
    for row in list(product(devices, repeat=len(problem.units)))[:: max(1, len(problem.units) * 3)]:
        model = cp_model.CpModel()
        choices = [{device: model.new_constant(int(device == own)) for device in devices} for own in row]
        add_contiguity(model, problem, choices)
        possible = cp_model.CpSolver().solve(model) in {cp_model.OPTIMAL, cp_model.FEASIBLE}
        assert possible == bool(contiguous_rows(problem, np.array([row], dtype=np.int64))[0]), row


def test_a_tensor_is_paid_for_once_on_either_side() -> None:
    # one tensor of 20 to two readers elsewhere: 20 to send, 20 to fetch, however many read it there
    problem = examples.graph({"a": 1, "b": 1, "c": 1}, [("a", ["b", "c"])], examples.pair(20))
    model = cp_model.CpModel()
    places = ({0: 1}, {1: 1}, {1: 1})
    choices = [{device: model.new_constant(value) for device, value in row.items()} for row in places]
    load = [[], []]
    add_exchange(model, replace(problem, profile="maxload_serial"), choices, load)
    assert [[price for _, price in row] for row in load] in ([[20], [20]], [[0], [20]], [[20], []], [[], [20]])
