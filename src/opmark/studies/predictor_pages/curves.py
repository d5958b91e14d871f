"""The pages of `opmark predictors curve` and `transfer`: error over the number of measured kernels."""

from collections.abc import Mapping, Sequence

from opmark.pages.curve import Line, curve
from opmark.pages.template import render
from opmark.predictors.judging.learning_curve import WANTED_ACC10, LearningPoint, reached
from opmark.predictors.model.metrics import assumption, device_minutes
from opmark.predictors.transfer.curve import CHOSEN, TransferPoint

_ACROSS = "kernels measured, and the device's minutes"
_DOWN = "median error, unseen shape groups"


def learning_page(release: str, curves: Mapping[str, Sequence[LearningPoint]]) -> str:
    """A self-contained HTML page of the learning curves of `release`, by target."""
    return render(
        "studies/templates/learning.html.jinja",
        title="How much measuring a predictor needs",
        release=release,
        wanted=WANTED_ACC10,
        targets=[
            {
                "name": name,
                "points": points,
                "errors": learning_picture(points),
                "within": learning_picture(points, misses=True),
                "reached": reached(points),
                "best": best_points(points),
                "assumption": assumption(points[0].kernels_per_second),
            }
            for name, points in curves.items()
            if points
        ],
    )


def learning_picture(points: Sequence[LearningPoint], *, misses: bool = False) -> str:
    """The curve of every estimator: median error or, with `misses`, the share of kernels not within ±10 %."""
    if not points:
        return ""
    lines = {
        name: [(one.rows, 1 - one.acc10 if misses else one.median) for one in points if one.estimator == name]
        for name in dict.fromkeys(point.estimator for point in points)
    }
    return _picture(
        lines,
        points[0].kernels_per_second,
        down="kernels not within ±10 %" if misses else _DOWN,
        title="Share of kernels missed" if misses else "Learning curve",
    )


def best_points(points: Sequence[LearningPoint]) -> dict[str, LearningPoint]:
    """Per estimator, the point with the most kernels within ±10 %; the earliest of equal points."""
    found: dict[str, LearningPoint] = {}
    for point in sorted(points, key=lambda one: one.rows):
        if point.estimator not in found or point.acc10 > found[point.estimator].acc10:
            found[point.estimator] = point
    return found


def transfer_page(receiver: str, points: Sequence[TransferPoint]) -> str:
    """A self-contained HTML page of the error over the number of samples, one line per method."""
    pace = points[0].kernels_per_second
    lines = {CHOSEN: [(one.samples, one.median) for one in points if one.chosen]}
    for name in dict.fromkeys(point.method for point in points):
        lines[name] = [(one.samples, one.median) for one in points if one.method == name]
    return render(
        "studies/templates/transfer.html.jinja",
        title="A new device from few samples",
        receiver=receiver,
        points=points,
        assumption=assumption(pace),
        picture=_picture(lines, pace, down=_DOWN, title=f"{receiver}: error over samples"),
    )


def _picture(lines: Mapping[str, Sequence[tuple[int, float]]], pace: float, *, down: str, title: str) -> str:
    return curve(
        [Line(label=name, points=tuple((float(x), y) for x, y in points)) for name, points in lines.items()],
        across=_ACROSS,
        down=down,
        title=title,
        text=lambda rows: with_minutes(rows, pace),
    )


def with_minutes(rows: float, kernels_per_second: float) -> str:
    """The label of an axis: a number of kernels, and the minutes that measuring them takes."""
    return f"{rows:,.0f} · {device_minutes(round(rows), kernels_per_second):.2g} min"
