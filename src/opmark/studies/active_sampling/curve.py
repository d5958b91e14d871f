"""The accuracy of predictions over measuring time: a JSON file that grows during the run, and its HTML page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.files import write_json, write_text
from opmark.core.schema import load
from opmark.core.units import format_duration
from opmark.pages.axis import linear_ticks
from opmark.pages.template import percent, render

SCHEMA = 1
FILE = "curve.json"
PAGE = "curve.html"
WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 12, 44
_COLOURS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAccuracy:
    """Errors of the `n` kernels of a target that were set aside before the first measurement, as fractions.

    `held_out` is the error that decides about further rounds: the median error of each kind's training rows, each
    predicted without its shape group, averaged with the kinds' shares of time as weights.
    """

    median: float
    p90: float
    acc10: float
    n: int
    held_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyPoint:
    """The accuracy after `seconds` (training included) and `kernels` finished trials."""

    seconds: float
    kernels: int
    targets: Mapping[str, TargetAccuracy]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCurve:
    """The points of one run in order; `stopped` is the reason for its end, empty while it continues."""

    suite: str
    target_error: float
    stopped: str = ""
    points: tuple[AccuracyPoint, ...] = field(default_factory=tuple)


def read_curve(folder: Path) -> AccuracyCurve | None:
    """The curve in `folder`, or None without one. Raises `ContentError` if it is malformed."""
    path = folder / FILE
    return load(path, AccuracyCurve, schema=SCHEMA) if path.is_file() else None


def write_curve(curve: AccuracyCurve, folder: Path) -> None:
    """Write `curve.json` and `curve.html` into `folder`."""
    write_json(folder / FILE, {"schema": SCHEMA, **plain(curve)})
    write_text(folder / PAGE, curve_page(curve))


def curve_page(curve: AccuracyCurve) -> str:
    """An HTML page: error over time by target, and the points as a table."""
    return render(
        "studies/templates/curve.html.jinja",
        title=f"{curve.suite}: accuracy by measuring time",
        curve=curve,
        picture=curve_picture(curve),
        names=_targets(curve.points),
    )


def curve_picture(curve: AccuracyCurve) -> str:
    """An SVG picture: each target's median error as a line, its 90th percentile dashed, the wanted error horizontal."""
    points = curve.points
    last_s = max([point.seconds for point in points], default=1.0) or 1.0
    errors = [error for point in points for one in point.targets.values() for error in (one.median, one.p90)]
    top = 1.1 * max([*errors, curve.target_error])

    def across(seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / last_s

    def down(error: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * error / top

    lines = []
    for index, name in enumerate(_targets(points)):
        mine = [(point, point.targets[name]) for point in points if name in point.targets]
        lines.append(
            {
                "name": name,
                "style": f"c{min(index, _COLOURS)}",
                "median": _path((across(point.seconds), down(one.median)) for point, one in mine),
                "p90": _path((across(point.seconds), down(one.p90)) for point, one in mine),
                "marks": [
                    (
                        across(point.seconds),
                        down(one.median),
                        f"{name} after {format_duration(point.seconds)}, {point.kernels:,} kernels: "
                        f"median {percent(one.median)}, 90th percentile {percent(one.p90)}",
                    )
                    for point, one in mine
                ],
            }
        )
    return render(
        "studies/templates/curve.svg.jinja",
        lines=lines,
        across=[(across(tick.value), tick.label) for tick in linear_ticks(0, last_s, 6, format_duration)],
        down=[(down(tick.value), tick.label) for tick in linear_ticks(0, top, 5, lambda error: percent(error, 0))],
        wanted=down(curve.target_error),
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        title=f"{curve.suite}: error of kernels set aside, by measuring time",
    )


def _targets(points: Sequence[AccuracyPoint]) -> list[str]:
    return sorted({name for point in points for name in point.targets})


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
