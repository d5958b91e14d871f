"""Pages of learning and transfer: both axes, and what was reached."""

from opmark.predictors.judging.learning_curve import LearningPoint
from opmark.predictors.transfer.curve import TransferPoint
from opmark.studies.predictor_pages.curves import (
    best_points,
    learning_page,
    learning_picture,
    transfer_page,
    with_minutes,
)


def point(estimator: str, rows: int, acc10: float) -> LearningPoint:
    return LearningPoint(
        estimator=estimator,
        rows=rows,
        minutes=rows / 120,
        kernels_per_second=2.0,
        n=50,
        median=0.2 / acc10,
        mape=0.3,
        acc10=acc10,
    )


POINTS = [point("lightgbm", 100, 0.4), point("lightgbm", 1200, 0.96), point("transfer", 20, 0.7)]


def test_the_axis_says_kernels_and_minutes() -> None:
    assert with_minutes(1200.0, 2.0) == "1,200 · 10 min"
    picture = learning_picture(POINTS)
    assert "1,000 · 8.3 min</text>" in picture
    assert " at 1,200 · 10 min</title>" in picture
    assert learning_picture([]) == ""
    assert learning_picture(POINTS, misses=True) != picture


def test_the_page_says_what_was_reached_and_what_it_assumes() -> None:
    page = learning_page("acme-1/1.0.0", {"onnxruntime-cpu-t1": POINTS, "nothing": []})
    assert "within ±10 % from 1200 kernels on, 10.0 minutes" in page
    assert "not reached; best 70" in page
    assert "assume 2 kernels measured a second" in page
    assert page.count("<polyline") == 4
    assert best_points(POINTS)["lightgbm"].rows == 1200


def test_transfer_has_the_minutes_too() -> None:
    points = [
        TransferPoint(
            samples=samples,
            minutes=samples / 120,
            kernels_per_second=2.0,
            method="scratch",
            donor="",
            divergence=0.1,
            validation=0.2,
            chosen=True,
            n=40,
            median=0.3,
            mape=0.4,
            acc10=0.5,
        )
        for samples in (20, 200)
    ]
    page = transfer_page("acme", points)
    assert "assume 2 kernels measured a second" in page
    assert "100 · 0.83 min</text>" in page
    assert '<td class="n">1.7</td>' in page
