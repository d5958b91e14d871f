"""Scores and learning curves of estimators as tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from opmark.cli.text.terminal import MISSING, show_table
from opmark.core.units import format_ns

if TYPE_CHECKING:
    from opmark.predictors.judging.learning_curve import LearningPoint
    from opmark.predictors.judging.scores import Score

_HALVES = ("acc10", "median", "kernel-sum-median", "kernel-sum-p90", "composition-median", "composition-p90")
USUAL = (
    "median",
    "mape",
    "p90",
    "acc5",
    "acc10",
    "weighted-acc10",
    "rmspe",
    "signed-median",
    "kendall-tau",
    "coverage90",
)


_FLOORS = ("noise floor", "floor acc10")
_INTERVAL, _FAMILIES = "acc10 (90 %)", "families"


def show_scores(scores: "Sequence[Score]", metrics: Sequence[str] = USUAL) -> None:
    """Print one table per target, ordered by split and median error, and one that divides the errors of networks."""
    from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SPLIT_NAMES

    for target in sorted({score.target for score in scores}):
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for score in (score for score in scores if score.target == target):
            row = cells.setdefault((score.split, score.estimator), {})
            row[score.metric] = _cell(score)
            row.setdefault("n", f"{score.n:,}")
            row |= _beside(score)
        medians = {
            (one.split, one.estimator): one.value for one in scores if (one.target, one.metric) == (target, "median")
        }
        order = sorted(cells, key=lambda cell: (SPLIT_NAMES.index(cell[0]), medians.get(cell, float("inf")), cell))
        columns = (*_FLOORS, *metrics, _INTERVAL, _FAMILIES, "n")
        rows = [
            (split, estimator, *(row.get(column, MISSING) for column in columns))
            for split, estimator in order
            if (row := cells[split, estimator])
        ]
        show_table(("split", "estimator", *columns), rows, left=2, title=target)
        counts = {
            (one.estimator, one.metric): one.n for one in scores if (one.target, one.split) == (target, NETWORKS_UNSEEN)
        }
        halves = [
            (
                estimator,
                of.removeprefix("@") or "all",
                *(row.get(f"{column}{of}", MISSING) for column in _HALVES),
                *(f"{counts.get((estimator, f'{column}{of}'), 0):,}" for column in (_HALVES[0], _HALVES[-1])),
            )
            for split, estimator in order
            if split == NETWORKS_UNSEEN and (row := cells[split, estimator])
            for of in sorted({"".join(name.partition("@")[1:]) for name in row})
            if f"acc10{of}" in row and (of or _HALVES[-1] in row)
        ]
        if halves:
            header = (NETWORKS_UNSEEN, "class", *_HALVES, "n", "n measured")
            show_table(header, halves, left=2, title="parts of a network's error")


def chosen_metrics(text: str) -> tuple[str, ...]:
    """The metrics in a text such as `rmse,acc15`; the usual metrics for an empty text. Raises `UnknownNameError`."""
    from opmark.core.registry import unknown_name
    from opmark.predictors.judging.scores import COVERAGE90
    from opmark.predictors.model.metrics import METRICS

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    known = (*METRICS, COVERAGE90)
    for name in names:
        if name not in known:
            raise unknown_name("metric", name, known)
    return names or USUAL


def _cell(score: "Score") -> str:
    if score.metric == "rmse":
        return format_ns(score.value)
    return f"{score.value:.3f}" if score.metric == "kendall-tau" else f"{score.value:.1%}"


def _beside(score: "Score") -> dict[str, str]:
    """The noise floor of a median and of ±10 %, and the interval of the latter if families were drawn again."""
    if score.metric == "median" and score.noise_floor is not None:
        return {_FLOORS[0]: f"{score.noise_floor:.1%}"}
    if score.metric != "acc10":
        return {}
    found = {} if score.noise_floor is None else {_FLOORS[1]: f"{score.noise_floor:.1%}"}
    if score.low is not None and score.high is not None:
        found |= {_INTERVAL: f"{100 * score.low:.0f}–{score.high:.0%}", _FAMILIES: f"{score.families:,}"}
    return found


def show_curve(target: str, points: "Sequence[LearningPoint]") -> None:
    """Print a learning curve as a table, and the number of kernels from which 95 % are within ±10 %."""
    from opmark.predictors.judging.learning_curve import WANTED_ACC10, reached
    from opmark.predictors.model.metrics import assumption

    rows = [
        (
            one.estimator,
            f"{one.rows:,}",
            f"{one.minutes:.1f}",
            f"{one.median:.1%}",
            f"{one.mape:.1%}",
            f"{one.acc10:.1%}",
            f"{one.n:,}",
        )
        for one in points
    ]
    show_table(("estimator", "kernels", "minutes", "median", "mape", "acc10", "n"), rows, title=target)
    for name, point in reached(points).items():
        best = max((one for one in points if one.estimator == name), key=lambda one: one.acc10)
        result = (
            f"from {point.rows:,} kernels on, {point.minutes:.1f} minutes"
            if point
            else f"not reached: {best.acc10:.1%} with {best.rows:,} kernels, {best.minutes:.1f} minutes"
        )
        click.echo(f"{name}: {WANTED_ACC10:.0%} of kernels within ±10 % {result}")
    if points:
        click.echo(assumption(points[0].kernels_per_second), err=True)
