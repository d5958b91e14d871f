"""Metrics of results: worked values, and None where a metric is undefined."""

import pytest

from opmark.leaderboards.scoring.metric import METRICS, Drawn, Result
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
