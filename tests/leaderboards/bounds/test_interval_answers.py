"""Answers of the interval model: optimal on a canonical graph, in an order that the simulator accepts."""

import time

import numpy as np
import pytest
from tests.leaderboards.examples import graph, pair

from opmark.leaderboards.bounds.interval_answers import passages, solved, timed_placements
from opmark.leaderboards.bounds.interval_model import IntervalModel
from opmark.leaderboards.problem.placement import Placement
from opmark.leaderboards.simulator.simulate import simulate

DIAMOND = graph({"a": 10, "b": 50, "c": 50, "d": 10}, [("a", ["b", "c"]), ("b", ["d"]), ("c", ["d"])], pair(20))


def test_the_optimum_of_a_diamond_comes_with_its_starts() -> None:
    cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="the extra `solvers` is not installed")
    known = Placement(device=np.zeros(4, dtype=np.int64))
    model = IntervalModel(DIAMOND, cp_model, contention=True)
    answer = solved(model, cp_model, deadline=time.monotonic() + 60, known=known, seed=0)
    assert answer is not None
    device, starts = answer
    costs = [simulate(DIAMOND, placement).cost_ns for placement in timed_placements(DIAMOND, device, starts)]
    assert costs == [90, 90, 90]
    assert starts is not None
    assert starts[0] == 0
    assert solved(model, cp_model, deadline=time.monotonic() - 1, known=None, seed=0) is None


def test_the_order_of_an_answer_is_that_of_its_starts() -> None:
    device = np.array([0, 0, 0, 0])
    by_default, by_priority, in_order = timed_placements(DIAMOND, device, np.array([0, 60, 10, 110]))
    assert by_default.priority is None
    assert by_priority.priority is not None
    assert by_priority.priority.argsort().tolist() == [3, 1, 2, 0]
    assert in_order.order == {0: [0, 2, 1, 3], 1: []}
    assert len(timed_placements(DIAMOND, device, None)) == 1, "loads have no order"


def test_passages_count_tensors_and_pairs_of_devices() -> None:
    assert passages(DIAMOND) == 3 * 2
