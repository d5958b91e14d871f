"""The page of `opmark predictors curve`: error over kernels and the device's minutes, a line per estimator."""

from collections.abc import Mapping, Sequence

from opmark.pages.curve import Line, curve
from opmark.pages.template import render
from opmark.predictors.judging.learning_curve import WANTED_ACC10, CurvePoint, reached
from opmark.predictors.model.device_time import assumption, device_minutes

ACROSS = "kernels measured, and the device's minutes"


def learning_page(release: str, curves: Mapping[str, Sequence[CurvePoint]]) -> str:
    """One HTML page that needs nothing else; `curves` by target."""
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


def learning_picture(points: Sequence[CurvePoint], *, misses: bool = False) -> str:
    """The curve of every estimator: its median error or, with `misses`, the share of kernels not within ±10 %."""
    if not points:
        return ""
    pace = points[0].kernels_per_second
    lines = [
        Line(
            label=name,
            points=tuple(
                (float(one.rows), 1 - one.acc10 if misses else one.median) for one in points if one.estimator == name
            ),
        )
        for name in dict.fromkeys(point.estimator for point in points)
    ]
    return curve(
        lines,
        across=ACROSS,
        down="kernels not within ±10 %" if misses else "median error, unseen shape groups",
        title="Share of kernels missed" if misses else "Learning curve",
        text=lambda rows: with_minutes(rows, pace),
    )


def best_points(points: Sequence[CurvePoint]) -> dict[str, CurvePoint]:
    """Per estimator, the point with the most kernels within ±10 %, the earliest of equals."""
    found: dict[str, CurvePoint] = {}
    for point in sorted(points, key=lambda one: one.rows):
        if point.estimator not in found or point.acc10 > found[point.estimator].acc10:
            found[point.estimator] = point
    return found


def with_minutes(rows: float, kernels_per_second: float) -> str:
    """A number of kernels as the axis of a curve says it, and how long they take to measure."""
    return f"{rows:,.0f} · {device_minutes(round(rows), kernels_per_second):.2g} min"
