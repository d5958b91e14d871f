"""Tables of scores: which metrics they show, and in which unit."""

import pytest

from opmark.cli.text.scores import USUAL, chosen_metrics, show_scores
from opmark.core.errors import UnknownNameError
from opmark.predictors.judging.scores import Score


def test_metrics_are_named_or_the_usual_ones() -> None:
    assert chosen_metrics("") == USUAL
    assert chosen_metrics("rmse, coverage90,") == ("rmse", "coverage90")
    with pytest.raises(UnknownNameError, match="no metric is called 'acc51'"):
        chosen_metrics("rmse,acc51")


def test_a_time_has_its_unit_and_an_order_none(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"rmse": 2500.0, "acc15": 0.5, "kendall-tau": 0.75}
    scores = [
        Score(target="t", estimator="e", split="random", metric=name, value=value, n=3, noise_floor=None)
        for name, value in values.items()
    ]
    show_scores(scores, tuple(values))
    printed = capsys.readouterr().out
    for shown in ("2.50 µs", "50.0%", "0.750"):
        assert shown in printed
    assert "mape" not in printed


def test_splits_come_in_their_order_and_the_best_first(capsys: pytest.CaptureFixture[str]) -> None:
    def score(estimator: str, split: str, metric: str, value: float, n: int) -> Score:
        return Score(target="t", estimator=estimator, split=split, metric=metric, value=value, n=n, noise_floor=None)

    scores = [
        score("worst", "networks-unseen", "median", 0.3, 5),
        score("worst", "networks-unseen", "acc10", 0.3, 5),
        score("worst", "networks-unseen", "composition-p90", 0.3, 4),
        score("worst", "random", "median", 0.3, 99),
        score("worst", "random", "acc10", 0.3, 99),
        score("best", "random", "median", 0.1, 99),
    ]
    show_scores(scores, ("median",))
    first, second = capsys.readouterr().out.split("parts of a network's error")
    places = [first.index(text) for text in ("random", "best", "worst", "networks-unseen")]
    assert places == sorted(places)
    # of networks, not of kernels
    (row,) = [line.split() for line in second.splitlines() if "worst" in line]
    assert row[-2:] == ["5", "4"]
