"""Placers that choose devices of a pool: each does what it says, and none misses a goal."""

import functools

import pytest
from tests.leaderboards.pools import MS, PRICES, pool

from opmark.core.errors import SubmissionError
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.search.placer import PLACERS, placing_names

GOALS = {
    "cost": {"latency_ns": 25 * MS},
    "latency": {"price_per_hour": 4.0},
    "rent": {"period_ns": 13 * MS},
    "throughput": {"price_per_hour": 5.0},
}


@functools.cache
def searched(objective):
    return attempt(pool(objective, **GOALS[objective]), "opmark", budget_s=1.5, seed=1)


RENTING = tuple(name for name in PLACERS.names() if name not in placing_names())
EXTRAS = {"heterbo": "sklearn", "exact-fleets": "ortools"}


def cost(problem, name):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason="the extra `solvers` is not installed")
    return attempt(problem, name, budget_s=1.5, seed=1)


def used_types(problem, found):
    devices = problem.cluster.devices
    placement = found.evaluation.placement
    used = set(placement.device.tolist()) | {one for row in placement.replicas.values() for one in row}
    return sorted(devices[number].type for number in used)


def test_the_track_has_all_of_them():
    assert set(RENTING) == {
        "ceer",
        "cheapest-single",
        "equal-types",
        "exact-fleets",
        "fastest-single",
        "heterbo",
        "marginal-gain",
        "melange",
        "random-fleet",
        "sailor-stages",
    }
    assert "opmark" in placing_names()


@pytest.mark.parametrize("name", RENTING)
@pytest.mark.parametrize("objective", GOALS)
def test_an_answer_keeps_the_limits_and_the_search_is_no_worse(name, objective):
    found = cost(pool(objective, **GOALS[objective]), name)
    assert found.solution.placer == name
    assert found.evaluation.cost >= searched(objective).evaluation.cost


@pytest.mark.parametrize("name", RENTING)
def test_a_goal_that_nothing_meets_gives_no_answer(name):
    with pytest.raises(SubmissionError, match="limits"):
        cost(pool("cost", latency_ns=1 * MS), name)


def test_single_devices_are_the_cheapest_and_the_fastest():
    problem = pool("cost", latency_ns=25 * MS)
    assert used_types(problem, cost(problem, "cheapest-single")) == ["slow"]
    assert used_types(problem, cost(problem, "fastest-single")) == ["fast"]
    # where the slow one is too slow, the cheapest one that meets the goal is fast
    tight = pool("cost", latency_ns=14 * MS)
    assert used_types(tight, cost(tight, "cheapest-single")) == ["fast"]


@pytest.mark.parametrize("name", ["equal-types", "ceer"])
def test_types_are_not_mixed_where_they_must_be_equal(name):
    for problem in (pool("latency", price_per_hour=6.0), pool("rent", period_ns=9 * MS)):
        assert len(set(used_types(problem, cost(problem, name)))) == 1


def test_unequal_types_win_where_a_cheap_device_can_take_a_branch():
    # a fast device alone needs 12 ms, two cost too much; an odd one beside it takes unit c, and all ends in 7
    problem = pool("latency", price_per_hour=4.5, transfer_ns=0)
    mixed, equal = cost(problem, "opmark"), cost(problem, "equal-types")
    assert mixed.evaluation.cost < equal.evaluation.cost
    assert len(set(used_types(problem, mixed))) == 2
    assert sum(PRICES[kind] for kind in used_types(problem, mixed)) <= 4.5
