"""The page of `opmark predictors evaluate`: every score, and pictures of the errors."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opmark.core.units import format_ns
from opmark.pages.bars import ErrorBar, error_bars
from opmark.pages.scatter import Point, scatter
from opmark.pages.template import render
from opmark.predictors.judging.evidence import Judged
from opmark.predictors.judging.learning_curve import LearningPoint
from opmark.predictors.judging.scores import Score, TargetScores
from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SPLIT_NAMES
from opmark.studies.predictor_pages.curves import learning_picture

COLUMNS = (
    "median", "mape", "p90", "acc5", "acc10", "acc15", "weighted-acc10", "rmspe", "signed-median", "kendall-tau",
    "coverage90",
)  # fmt: skip
# More points cannot be told apart in a picture.
_MOST_POINTS = 1500


def evaluation_page(
    release: str, evaluations: Sequence[TargetScores], curves: Mapping[str, Sequence[LearningPoint]], *, ours: str
) -> str:
    """A self-contained HTML page. The pictures show the estimator `ours`; `curves` are learning curves by target."""
    return render(
        "studies/templates/evaluation.html.jinja",
        title="Predictors judged",
        release=release,
        columns=COLUMNS,
        targets=[
            {
                "name": one.target,
                "tables": [_table(one.scores, split) for split in SPLIT_NAMES if _has(one.scores, split)],
                "halves": _halves(one.scores),
                "pictures": [
                    _pictures(split, one.judged[ours, split]) for split in SPLIT_NAMES if (ours, split) in one.judged
                ],
                "curve": learning_picture(curves.get(one.target, ())),
            }
            for one in evaluations
        ],
        ours=ours,
    )


def _has(scores: Sequence[Score], split: str) -> bool:
    return any(score.split == split for score in scores)


def _table(scores: Sequence[Score], split: str) -> dict[str, Any]:
    cells: dict[str, dict[str, float]] = {}
    for score in scores:
        if score.split == split:
            cells.setdefault(score.estimator, {})[score.metric] = score.value
    # All estimators are judged on the same rows of a split.
    count, floor = next(
        (score.n, score.noise_floor) for score in scores if (score.split, score.metric) == (split, "median")
    )
    what = "networks" if split == NETWORKS_UNSEEN else "kernels"
    ordered = sorted(cells.items(), key=lambda item: item[1].get("median", np.inf))
    return {"split": split, "rows": ordered, "floor": floor, "n": count, "what": what}


def _halves(scores: Sequence[Score]) -> list[tuple[str, dict[str, float]]]:
    """Per estimator: the errors against the sum of measured kernels, and those of that sum."""
    found: dict[str, dict[str, float]] = {}
    for score in scores:
        if score.split == NETWORKS_UNSEEN and score.metric.startswith(("kernel-sum-", "composition-")):
            found.setdefault(score.estimator, {"n": score.n})[score.metric] = score.value
    return sorted(found.items())


def _pictures(split: str, judged: Judged) -> dict[str, Any]:
    error = np.abs(judged.predicted_ns / judged.measured_ns - 1)
    networks = split == NETWORKS_UNSEEN
    shown = np.arange(len(error))
    if len(shown) > _MOST_POINTS:
        shown = np.sort(np.random.default_rng(0).permutation(len(error))[:_MOST_POINTS])
    points = [
        Point(
            label=judged.kinds[index],
            measured=float(judged.measured_ns[index]),
            predicted=float(judged.predicted_ns[index]),
            group="" if networks else judged.kinds[index],
            low=float(judged.low_ns[index]) if networks and judged.low_ns is not None else None,
            high=float(judged.high_ns[index]) if networks and judged.high_ns is not None else None,
        )
        for index in shown
    ]
    decades = np.floor(np.log10(judged.measured_ns)).astype(int)
    by_decade = np.argsort(decades, kind="stable")
    bounds = [f"{format_ns(10.0**decade)} to {format_ns(10.0 ** (decade + 1))}" for decade in decades[by_decade]]
    return {
        "split": split,
        "shown": len(shown),
        "count": len(error),
        "scatter": scatter(points, title=f"{split}: predicted against measured latency"),
        "decades": error_table(bounds, error[by_decade], what="measured latency", as_given=True),
        "kinds": error_table(judged.kinds, error, what="network" if networks else "kind"),
    }


def error_table(
    labels: Sequence[str], error: "np.ndarray[Any, Any]", *, what: str = "kind", as_given: bool = False
) -> str:
    """A table of bars: median and 90th percentile of the absolute relative `error` per label.

    The largest median comes first, unless `as_given`.
    """
    names = np.array(labels)
    bars = [
        ErrorBar(
            label=str(name),
            count=int((names == name).sum()),
            median=float(np.median(error[names == name])),
            p90=float(np.quantile(error[names == name], 0.9)),
        )
        for name in dict.fromkeys(labels)
    ]
    return error_bars(bars, what=what, as_given=as_given)
