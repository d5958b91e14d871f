"""Pesto's program on cases with known optima, and on graphs that need coarsening."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.placers import generated
from tests.contracts.test_placers import training
from tests.leaderboards.examples import device, pair, peft_canonical, pipeline

from opmark.core.errors import MissingExtraError
from opmark.leaderboards.placers.pesto import OPERATIONS, coarsened
from opmark.leaderboards.problem.fields import Tensor, Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.single import best_single_device


@pytest.fixture(autouse=True)
def _needs_the_solver(request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.name:
        pytest.importorskip("ortools", reason="the extra `solvers` is not installed")


def test_pesto_orders_and_places_at_once() -> None:
    assert attempt(peft_canonical(), "pesto", budget_s=20).evaluation.cost == 113


def test_pesto_balances_loads() -> None:
    assert attempt(pipeline([3, 3, 2, 2, 2], 2), "pesto", budget_s=10).evaluation.cost == 6


def test_pesto_sees_that_a_link_carries_one_tensor_at_a_time() -> None:
    # p and e must run on d0, b and c would take 100 each there and 1 each on d1: both tensors go there and back.
    # One after the other they arrive at 30 and 50 and are back at 51 and 71; on a link that carries both at once at 52.
    units = [Unit(name="p", exec_ns={"x": 10}), Unit(name="e", exec_ns={"x": 5})]
    units += [Unit(name=name, exec_ns={"x": 100, "y": 1}) for name in "bc"]
    tensors = [Tensor(name=f"to {name}", size_bytes=0, producer="p", consumers=(name,)) for name in "bc"]
    tensors += [Tensor(name=f"from {name}", size_bytes=0, producer=name, consumers=("e",)) for name in "bc"]
    cluster = replace(pair(20), devices=(device("d0"), device("d1", "y")))
    problem = Problem(name="busy", cluster=cluster, units=tuple(units), tensors=tuple(tensors))
    assert attempt(problem, "pesto", budget_s=10).evaluation.cost == 76
    assert attempt(replace(problem, profile="contention_free"), "pesto", budget_s=10).evaluation.cost == 57


def test_a_training_step_is_more_than_its_classes() -> None:
    # forward, backward and update share devices, but they are operations of their own
    problem = training(8)
    coarse = coarsened(problem)
    assert coarse is not None
    assert coarse.problem.arrays.units == 24
    assert attempt(problem, "pesto", budget_s=10).evaluation.cost <= best_single_device(problem)[1]


def test_a_large_graph_is_coarsened_to_two_hundred() -> None:
    coarse = coarsened(generated(1, units=600, width=5, devices=3))
    assert coarse is not None
    assert OPERATIONS[0] // 2 < coarse.problem.arrays.units <= OPERATIONS[0]
    assert np.all(np.bincount(coarse.of_unit) > 0)


def test_pesto_without_its_solver_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(MissingExtraError, match="pesto needs OR-tools"):
        attempt(peft_canonical(), "pesto", budget_s=1)
