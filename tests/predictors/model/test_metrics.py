"""Metrics against hand-worked numbers."""

import numpy as np
import pytest

from opmark.predictors.model.metrics import METRICS, all_metrics, coverage

MEASURED = np.array([100.0, 200.0, 400.0, 1000.0])
PREDICTED = np.array([104.0, 180.0, 460.0, 700.0])


def test_hand_worked() -> None:
    found = all_metrics(MEASURED, PREDICTED)
    assert found == pytest.approx(
        {
            "rmse": np.sqrt((16 + 400 + 3600 + 90000) / 4),
            "rmspe": np.sqrt((0.04**2 + 0.1**2 + 0.15**2 + 0.3**2) / 4),
            "acc5": 0.25,
            "acc10": 0.5,
            "acc15": 0.75,
            "weighted-acc10": 300 / 1700,
            "mape": 0.59 / 4,
            "median": 0.125,
            "p90": 0.255,
            "signed-median": -0.03,
            "kendall-tau": 1.0,
        }
    )
    assert set(found) == set(METRICS)


def test_order_is_all_that_kendall_sees() -> None:
    assert METRICS["kendall-tau"](MEASURED, -PREDICTED) == pytest.approx(-1)
    assert METRICS["kendall-tau"](MEASURED, MEASURED**3) == pytest.approx(1)
    assert METRICS["kendall-tau"](MEASURED, np.ones(4)) == 0
    assert METRICS["kendall-tau"](MEASURED[:1], PREDICTED[:1]) == 1


def test_coverage_counts_the_ends() -> None:
    assert coverage(MEASURED, MEASURED - 1, MEASURED) == 1
    assert coverage(MEASURED, MEASURED + 1, MEASURED + 2) == 0
    assert coverage(MEASURED, np.array([0, 0, 500, 0.0]), np.array([200, 100, 600, 2000.0])) == 0.5
