"""Error over the number of kernels."""

from dataclasses import replace

import pytest
from tests.predictors import law

from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.learning_curve import LearningPoint, learning_curve, reached, with_donor
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.metrics import assumption, device_minutes
from opmark.predictors.model.training import train_on
from opmark.predictors.transfer.choosing import Donor


def test_more_kernels_help_and_the_same_ones_judge() -> None:
    evidence = Evidence(target=law.TARGET, measurements=law.rows(150, ("gemm", "softmax")), hardware=law.HARDWARE)
    heard: list[tuple[str, str]] = []
    points = learning_curve(
        evidence,
        estimators=("lightgbm", "nearest"),
        counts=(20, 60, 100_000),
        progress=lambda name, what: heard.append((name, what)),
    )
    assert len(points) == len(heard) == 6
    assert len({point.n for point in points}) == 1
    for name in ("lightgbm", "nearest"):
        own = [point for point in points if point.estimator == name]
        assert [point.rows for point in own] == sorted(point.rows for point in own)
        assert own[-1].median < own[0].median
    assert points[2].rows + points[2].n == 300
    assert all(point.minutes == device_minutes(point.rows, 2.0) for point in points)


def test_minutes_are_rows_at_a_pace() -> None:
    assert device_minutes(600, 2.0) == 5
    assert assumption(2.5) == "device minutes assume 2.5 kernels measured a second"


@pytest.mark.usefixtures("short")
def test_a_donor_gives_a_curve_of_its_own() -> None:
    slower = [
        replace(row, latency_hot_ns=2 * row.latency_hot_ns, latency_rotated_ns=2 * row.latency_rotated_ns)
        for row in law.rows(60, ("gemm", "softmax"))
    ]
    evidence = Evidence(target=law.TARGET, measurements=slower, hardware=law.HARDWARE)
    donor = train_on(law.rows(60, ("gemm", "softmax")), law.TARGET, hardware=law.HARDWARE)
    points = with_donor(evidence, [Donor(name="sister", model=CostModel(donor))], kernels_per_second=1.0)
    assert [(point.estimator, point.rows, point.minutes) for point in points] == [
        ("transfer", 20, 20 / 60),
        ("transfer", 50, 50 / 60),
    ]
    assert points[-1].median < 0.1


def point(estimator: str, rows: int, acc10: float) -> LearningPoint:
    return LearningPoint(
        estimator=estimator, rows=rows, minutes=rows / 120, kernels_per_second=2.0, n=9, median=0, mape=0, acc10=acc10
    )


def test_reached_is_where_it_stays_good() -> None:
    points = [point("a", 100, 0.96), point("a", 200, 0.90), point("a", 500, 0.95), point("a", 1000, 0.97)]
    found = reached([*points, point("b", 100, 0.99), point("b", 200, 0.5)])
    assert found == {"a": points[2], "b": None}
    assert reached(points, acc10=0.9)["a"] == points[0]


def test_without_two_sides_there_is_no_curve() -> None:
    assert learning_curve(Evidence(target=law.TARGET, measurements=law.rows(3, ("gemm",)))) == []
