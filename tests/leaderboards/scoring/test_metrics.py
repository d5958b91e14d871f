"""Metrics of results: worked values, and None where a metric is undefined."""

import pytest

from opmark.leaderboards.problem.schedule import INVALID_COST
from opmark.leaderboards.scoring.metric import METRICS, Drawn, Result
from opmark.leaderboards.scoring.robustness import shares_won
from opmark.leaderboards.scoring.score_formulas import (
    geometric_mean,
)


def result(**facts) -> Result:
    usual = {"problem": "p", "cost": 150, "bound": 100, "best_known": 100, "single": 200, "scored": True}
    return Result(**{**usual, "quality": 2 / 3, "gain": 0.5, **facts})


def test_metrics() -> None:
    invalid = result(cost=None, quality=0.0, gain=None)
    values = {name: METRICS.load(name).value([result(), invalid]) for name in METRICS.names()}
    assert values["valid"] == 0.5
    assert values["gain"] == 0.25
    assert values["gap"] == pytest.approx(0.5)
    assert values["profile"] == pytest.approx(0.25)
    assert values["quality"] == pytest.approx(geometric_mean([2 / 3, 0]))
    unscored = [result(scored=False)]
    assert [METRICS.load(name).value(unscored) for name in ("quality", "gain", "profile")] == [None] * 3
    assert METRICS.load("gap").value([invalid]) is None


def test_robustness_holds_answers_against_drawn_errors() -> None:
    robust, spread = METRICS.load("robust-quality"), METRICS.load("spread")
    drawn = result(drawn=Drawn(median=200, p95=300))
    assert robust.value([drawn]) == pytest.approx(0.5)
    assert robust.value([drawn, result(best_known=150)]) == pytest.approx(0.5**0.5), "no interval: the cost stays"
    assert robust.value([drawn, result(cost=None, quality=0.0, gain=None)]) == pytest.approx((0.5 * 0.01) ** 0.5)
    assert spread.value([drawn, result()]) == pytest.approx(1.0)
    assert [metric.value([result()]) for metric in (robust, spread)] == [None, None]


def test_draws_are_won_by_the_cheapest_valid_answers_and_counted_for_pools_only() -> None:
    shares = shares_won({"a": [1, 5, INVALID_COST, 4], "b": [2, 5, INVALID_COST, 3], "c": [9, 9, 9, INVALID_COST]})
    assert shares == {"a": 0.5, "b": 0.5, "c": 0.25}
    assert shares_won({"a": [INVALID_COST], "b": [INVALID_COST]}) == {"a": 0.0, "b": 0.0}
    metric = METRICS.load("draws-won")
    won = result(drawn=Drawn(median=200, p95=300, won=0.8))
    assert metric.value([won]) == 0.8
    assert metric.value([won, result(cost=None, quality=0.0, gain=None)]) == 0.4
    assert metric.value([result(drawn=Drawn(median=200, p95=300))]) is None
