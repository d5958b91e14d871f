"""Savings of one entry over another: shares of the cost, and a median with the interval of order statistics."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.leaderboards.provisioning.offers import diamond

from opmark.core.errors import NothingSelectedError
from opmark.core.reading import read_json
from opmark.leaderboards.problem.fields import GoalLimits
from opmark.leaderboards.provisioning.savings import PoolSaving, goal_of, savings_of, summary_of
from opmark.leaderboards.scoring.track import load_track

TRACK = load_track(Path(__file__).resolve().parents[3] / "leaderboards", "provisioning")


def pool(cost, other):
    return PoolSaving(problem="p", goal="demand", cost=cost, other_cost=other)


def test_a_saving_is_a_share_of_the_other_cost():
    assert pool(75, 100).saving == 0.25
    assert pool(125, 100).saving == -0.25
    assert pool(75, None).saving is None
    assert pool(None, 100).saving is None


def test_the_median_has_the_interval_of_the_signs():
    # Of ten values, the second and the ninth hold the median in 1 - 2 * 11 / 1024 = 97.9 % of all samples.
    found = summary_of([pool(100 - saving, 100) for saving in range(10)])
    assert found.median == pytest.approx(0.045)
    assert (found.low, found.high, found.most) == pytest.approx((0.01, 0.08, 0.09))
    assert (found.pools, found.better, found.worse) == (10, 9, 0)


def test_few_pools_have_all_of_them_as_their_interval_and_none_has_no_summary():
    found = summary_of([pool(90, 100), pool(110, 100), pool(None, 100)])
    assert (found.pools, found.better, found.worse) == (2, 1, 1)
    assert (found.low, found.high) == pytest.approx((-0.1, 0.1))
    assert summary_of([pool(90, None)]) is None


def test_goals_follow_from_the_objective_and_the_limits():
    problem = replace(diamond().whole, objective="hypervolume", limits=GoalLimits(period_ns=5, price_per_hour=1.0))
    assert goal_of(problem) == "front-per-sample"
    assert goal_of(replace(problem, limits=GoalLimits(latency_ns=5, price_per_hour=1.0))) == "front"
    assert goal_of(replace(problem, objective="rent", limits=GoalLimits(period_ns=5))) == "demand"


def test_the_stored_answers_are_simulated_and_an_answer_that_misses_the_goal_has_no_cost():
    found = savings_of(TRACK, "opmark", "equal-types")
    stored = {row["name"]: row["results"] for row in read_json(TRACK.folder / "standings.json")["rows"]}
    for name, costs in (("opmark", [one.cost for one in found]), ("equal-types", [one.other_cost for one in found])):
        assert costs == [one["cost"] for one in stored[name]]
    single = savings_of(TRACK, "opmark", "cheapest-single")
    assert any(one.other_cost is None for one in single), "no single device meets every goal"
    with pytest.raises(NothingSelectedError, match=r"no answers of .nobody."):
        savings_of(TRACK, "opmark", "nobody")


def test_the_guide_states_the_savings_of_the_stored_answers():
    rows = savings_of(TRACK, "opmark", "equal-types")
    guide = " ".join((TRACK.leaderboards.parent / "docs" / "guide" / "renting.md").read_text(encoding="utf-8").split())
    for group in (rows, [row for row in rows if row.saving]):
        found = summary_of(group)
        for share in (found.median, found.low, found.high, found.most):
            assert f"{100 * share:.1f} %" in guide
        assert f" {found.pools} " in guide
