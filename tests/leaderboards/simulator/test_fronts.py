"""Fronts of money against time: their cost worked by hand, and what makes a front invalid."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderboards.pools import MS, pool

from opmark.core.errors import ContentError, PlacementError
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.problem.placement import Placement, front_of, load_solution, save_solution, solution_of
from opmark.leaderboards.scoring.answers import row_of, solution_in
from opmark.leaderboards.scoring.robustness import drawn_factors, front_robustness
from opmark.leaderboards.simulator.evaluation import evaluate
from opmark.leaderboards.simulator.fronts import MoneyAndTime, mean_time_ns, undominated
from opmark.leaderboards.simulator.simulate import simulate, simulate_many
from opmark.leaderboards.simulator.trace import chrome_trace

# Numbers of devices: 0 and 1 are fast (3 an hour), 2 to 4 slow (1 an hour), 5 is odd.
SLOW, FAST, TWO_FAST = [2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 1, 0]


def point(price, time_ns):
    return MoneyAndTime(price_per_hour=Fraction(price), time_ns=Fraction(time_ns))


def placed(row):
    return Placement(device=np.array(row, dtype=np.int64))


def front(problem, *rows):
    return front_of([solution_of(problem, placed(row), placer="by-hand") for row in rows])


def test_the_cost_is_the_mean_of_the_least_time_over_all_budgets():
    limits = GoalLimits(latency_ns=20, price_per_hour=10.0)
    # budgets from 0 to 2 buy nothing (20), those to 5 buy 12, the rest 6: (2 x 20 + 3 x 12 + 5 x 6) / 10
    assert mean_time_ns(limits, [point(2, 12), point(5, 6)]) == Fraction(106, 10)
    # the rectangle of the reference point less the area that the front dominates, over the reference price
    assert (20 * 10 - (3 * 8 + 5 * 14)) / 10 == 10.6
    assert mean_time_ns(limits, []) == 20
    assert mean_time_ns(limits, [point(5, 6), point(6, 6), point(2, 12), point(7, 30)]) == Fraction(106, 10)
    assert mean_time_ns(limits, [point(0, 1)]) == 1


def test_a_front_of_three_fleets_by_hand():
    problem = pool("hypervolume", latency_ns=30 * MS, price_per_hour=10.0)
    found = evaluate(problem, front(problem, FAST, SLOW, TWO_FAST))
    free = replace(problem, objective="latency", limits=GoalLimits())
    slow, fast, two = (simulate(free, placed(row)).latency_ns for row in (SLOW, FAST, TWO_FAST))
    # one hour of a slow device costs 1, of a fast one 3, of two fast ones 6
    exact = Fraction(1 * 30 * MS + 2 * slow + 3 * fast + 4 * two, 10)
    assert (24 * MS <= slow < 24.1 * MS, 12 * MS <= fast < 12.1 * MS, 7 * MS <= two < 7.1 * MS) == (True,) * 3
    assert found.schedule.value == exact
    assert found.cost == -int(-exact // 1)
    assert [one["devices"] for one in found.facts(problem)["front"]] == [["fast-0"], ["slow-0"], ["fast-0", "fast-1"]]
    # one placement is a front of one point
    alone = evaluate(problem, solution_of(problem, placed(FAST)))
    assert alone.schedule.value == Fraction(3 * 30 * MS + 7 * fast, 10)
    assert simulate_many(problem, np.array([FAST], dtype=np.int64)).tolist() == [alone.cost]


def test_a_front_of_periods_counts_replicas():
    problem = pool("hypervolume", period_ns=30 * MS, price_per_hour=8.0)
    problem = replace(problem, replication=True)
    copied = replace(placed(FAST), replicas={0: [1]})
    both = front_of([solution_of(problem, placed(SLOW)), solution_of(problem, copied)])
    # 24 ms of work on a slow device; 12 ms on a fast one, shared by two of them
    assert evaluate(problem, both).schedule.value == Fraction(1 * 30 + 5 * 24 + 2 * 6, 8) * MS


def test_one_placement_beyond_the_reference_point_makes_a_front_invalid():
    problem = pool("hypervolume", latency_ns=20 * MS, price_per_hour=5.0)
    assert evaluate(problem, front(problem, FAST)).cost < 20 * MS
    with pytest.raises(PlacementError, match=r"placement 2 of the front: it takes 24.* are allowed"):
        evaluate(problem, front(problem, FAST, SLOW))
    with pytest.raises(PlacementError, match=r"placement 2 of the front: its devices cost 6 per hour"):
        evaluate(problem, front(problem, FAST, TWO_FAST))


def test_a_front_is_refused_where_one_placement_is_asked_for_and_where_it_is_too_long():
    one = pool("cost", latency_ns=30 * MS)
    with pytest.raises(PlacementError, match="asks for one placement"):
        evaluate(one, front(one, FAST, SLOW))
    many = pool("hypervolume", latency_ns=30 * MS, price_per_hour=5.0)
    with pytest.raises(PlacementError, match="at most 64 placements, not 65"):
        evaluate(many, front(many, *[FAST] * 65))
    with pytest.raises(PlacementError, match="at least one"):
        front_of([])


@pytest.mark.parametrize(
    "limits",
    [
        GoalLimits(),
        GoalLimits(latency_ns=5),
        GoalLimits(price_per_hour=5.0),
        GoalLimits(latency_ns=5, period_ns=5, price_per_hour=5.0),
    ],
)
def test_a_reference_point_has_a_price_and_one_time(limits):
    with pytest.raises(ContentError, match="reference point"):
        checked(replace(pool("hypervolume"), limits=limits), "pool")


def test_a_front_is_stored_with_all_of_its_placements(tmp_path):
    problem = pool("hypervolume", latency_ns=30 * MS, price_per_hour=10.0)
    solution = front(problem, FAST, SLOW)
    save_solution(solution, tmp_path / "front.json")
    assert load_solution(tmp_path / "front.json", problem) == solution
    assert solution_in(row_of(solution, problem), problem, entry="by-hand") == solution
    assert [one.device["a"] for one in solution.points] == ["fast-0", "slow-0"]


def test_a_trace_shows_the_first_placement_with_the_cost_that_it_has_alone():
    problem = pool("hypervolume", latency_ns=30 * MS, price_per_hour=10.0)
    found = evaluate(problem, front(problem, FAST, SLOW))
    trace = chrome_trace(problem, found)
    assert trace["otherData"]["cost_ns"] == found.front[0].cost > found.cost


def test_draws_move_every_point_of_a_front():
    problem = pool("hypervolume", latency_ns=25 * MS, price_per_hour=10.0)
    wide = dict.fromkeys(("fast", "slow", "odd"), (0.8, 1.25))
    problem = replace(
        problem, units=tuple(replace(unit, interval={k: wide[k] for k in unit.exec_ns}) for unit in problem.units)
    )
    found = evaluate(problem, front(problem, FAST, SLOW))
    drawn = front_robustness(problem, found, factors=drawn_factors(problem, draws=30))
    assert min(drawn.costs) < found.cost < max(drawn.costs)
    # a slow device that a draw takes beyond 25 ms adds nothing, and invalidates nothing
    assert max(drawn.costs) < 25 * MS


POINTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 25)), max_size=6)


@settings(max_examples=60, deadline=None)
@given(points=POINTS, more=st.tuples(st.integers(0, 12), st.integers(0, 25)))
def test_the_cost_is_what_the_hypervolume_leaves_and_never_rises_with_a_point(points, more):
    limits = GoalLimits(latency_ns=20, price_per_hour=10.0)
    front_points = [point(*one) for one in points]
    # unit squares that a point dominates
    dominated = sum(
        any(price <= column and time <= row for price, time in points) for column in range(10) for row in range(20)
    )
    assert mean_time_ns(limits, front_points) == Fraction(200 - dominated, 10)
    assert mean_time_ns(limits, [*front_points, point(*more)]) <= mean_time_ns(limits, front_points)
    assert mean_time_ns(limits, undominated(front_points)) == mean_time_ns(limits, front_points)
