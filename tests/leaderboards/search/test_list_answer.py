"""A list scheduler answers with the cheapest variant of its schedule that fits."""

import numpy as np
from hypothesis import given, settings
from tests.leaderboards.examples import graph, pair, problems

from opmark.leaderboards.problem.placement import Placement, placement_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.list_answer import cheapest_variant, list_answer
from opmark.leaderboards.search.lists.list_schedule import schedule_by_earliest_start
from opmark.leaderboards.simulator.simulate import simulate


def test_a_harmful_order_is_dropped() -> None:
    problem = graph({"a": 1, "b": 9, "c": 9}, [("a", ["c"])], pair())
    placement = Placement(device=np.array([0, 0, 1]), order={0: (1, 0)})
    best = cheapest_variant(problem, placement)
    assert best.order is None
    assert simulate(problem, best).cost_ns < simulate(problem, placement).cost_ns


@settings(max_examples=20, deadline=None)
@given(problems())
def test_the_answer_is_never_dearer_than_the_schedule(problem: Problem) -> None:
    rank = problem.arrays.default_priority
    schedule = schedule_by_earliest_start(problem, rank)
    answer = placement_of(problem, list_answer(problem, schedule, rank, placer="x"))
    assert simulate(problem, answer).cost_ns <= simulate(problem, schedule.placement(rank)).cost_ns
