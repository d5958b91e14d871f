"""The pages of judged predictors: everything on them, nothing from outside."""

import numpy as np

from opmark.predictors.judging.evidence import Judged
from opmark.predictors.judging.learning_curve import LearningPoint
from opmark.predictors.judging.scores import Score, TargetScores
from opmark.predictors.transfer.curve import TransferPoint
from opmark.studies.predictor_pages.curves import transfer_page
from opmark.studies.predictor_pages.evaluation import evaluation_page


def judged(count: int, *, networks: bool = False) -> Judged:
    measured = np.logspace(3, 7, count)
    predicted = measured * np.where(np.arange(count) % 2, 1.05, 0.97)
    return Judged(
        kinds=tuple(f"net{index}" if networks else ("gemm", "conv")[index % 2] for index in range(count)),
        measured_ns=measured,
        predicted_ns=predicted,
        variation=np.full(count, 0.01),
        low_ns=predicted * 0.9,
        high_ns=predicted * 1.1,
    )


def score(estimator: str, split: str, metric: str, value: float) -> Score:
    return Score(target="t", estimator=estimator, split=split, metric=metric, value=value, n=7, noise_floor=0.011)


def test_the_page_shows_scores_pictures_halves_and_the_curve() -> None:
    scores = (
        score("lightgbm", "random", "median", 0.031),
        score("nn-meter-forest", "random", "median", 0.431),
        score("lightgbm", "networks-unseen", "median", 0.05),
        *(
            score("lightgbm", "networks-unseen", f"{half}-{metric}", 0.04)
            for half in ("kernel-sum", "composition")
            for metric in ("median", "p90")
        ),
    )
    evaluation = TargetScores(
        target="onnxruntime-cpu-t1",
        scores=scores,
        judged={("lightgbm", "random"): judged(40), ("lightgbm", "networks-unseen"): judged(5, networks=True)},
    )
    points = [
        LearningPoint(
            estimator=name,
            rows=rows,
            minutes=rows / 120,
            kernels_per_second=2.0,
            n=40,
            median=10 / rows,
            mape=0.2,
            acc10=0.5,
        )
        for name in ("lightgbm", "nn-meter-forest")
        for rows in (100, 1000)
    ]
    page = evaluation_page("acme/1.0.0", [evaluation], {"onnxruntime-cpu-t1": points}, ours="lightgbm")
    for text in ("acme/1.0.0", "random", "networks-unseen", "3.1 %", "43.1 %", "1.1 %", "Learning curve", "net4"):
        assert text in page
    assert "7 kernels. Measuring the same kernels again differs by 1.1 %" in page
    assert "7 networks. " in page
    assert page.count('<tr class="ours"><th scope="row">lightgbm') == 2
    assert page.count('<svg class="scatter"') == 2
    assert page.count("<polyline") == 2
    decades = ["1.00 µs to 10.0 µs", "10.0 µs to 100 µs", "100 µs to 1.00 ms", "1.00 ms to 10.0 ms"]
    places = [page.index(decade) for decade in decades]
    assert places == sorted(places)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_target_without_scores_is_still_a_page() -> None:
    page = evaluation_page("acme/1.0.0", [TargetScores(target="t", scores=(), judged={})], {}, ours="lightgbm")
    assert "<h2>t</h2>" in page
    assert "Learning curve" not in page


def test_the_transfer_page_draws_every_method_and_the_choice() -> None:
    points = [
        TransferPoint(
            samples=samples, minutes=samples / 120, kernels_per_second=2.0, method=method,
            donor="" if method == "scratch" else "b:t", divergence=0.1, validation=0.2,
            chosen=method == "scratch", n=9, median=0.1, mape=0.2, acc10=0.4,
        )
        for samples in (20, 100)
        for method in ("scratch", "one-scalar")
    ]  # fmt: skip
    page = transfer_page("a:t", points)
    assert page.count("<polyline") == 3
    assert "scratch (chosen)" in page
    assert "one-scalar" in page
