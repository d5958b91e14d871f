"""Scatter plots of predicted against measured latency on logarithmic axes, with error bands."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opmark.core.errors import ContentError
from opmark.core.units import format_ns
from opmark.pages.axis import log_fraction, log_ticks
from opmark.pages.template import picture_sheet, render, signed_percent, standalone

COLOURS = 8
WIDTH, HEIGHT = 440, 380
LEFT, RIGHT, TOP, BOTTOM = 72, 12, 12, 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One predicted and measured value; `low` and `high` are its prediction interval, if it has one."""

    label: str
    measured: float
    predicted: float
    group: str = ""
    low: float | None = None
    high: float | None = None


def scatter(
    points: Sequence[Point],
    *,
    text: Callable[[float], str] = format_ns,
    bands: Sequence[float] = (0.1,),
    radius: float = 3.0,
    title: str = "Predicted against measured latency",
    alone: bool = False,
    named_beyond: float = math.inf,
) -> str:
    """The plot as SVG markup with a legend, or with `alone` as a standalone SVG file.

    `text` formats a value. `bands` are relative errors, drawn beside the diagonal. Groups get colours in order of
    appearance. Points whose relative error is above `named_beyond` have their labels beside them. Raises
    `ContentError` where a value is not positive.
    """
    low, high = _limits(points)

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(min(max(value, low), high), low, high)

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log_fraction(min(max(value, low), high), low, high)

    def line(factor: float) -> tuple[float, float, float, float]:
        """The line predicted = factor · measured, from edge to edge."""
        start, end = max(low, low / factor), min(high, high / factor)
        return across(start), down(start * factor), across(end), down(end * factor)

    styles = _styles(points)
    marks = [
        {
            "x": across(point.measured),
            "y": down(point.predicted),
            "span": None if point.low is None or point.high is None else (down(point.low), down(point.high)),
            "style": styles[point.group],
            "name": point.label if abs(point.predicted / point.measured - 1) > named_beyond else "",
            "above": point.predicted > point.measured,
            "tooltip": _tooltip(point, text),
        }
        for point in points
    ]
    made = render(
        "pages/scatter.svg.jinja",
        marks=marks,
        ticks=[
            {"x": across(tick.value), "y": down(tick.value), "label": tick.label} for tick in log_ticks(low, high, text)
        ],
        truth=line(1.0),
        bands=[line(factor) for band in bands for factor in (1 + band, 1 / (1 + band))],
        legend=[(style, group) for group, style in styles.items() if group],
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        radius=radius,
        title=title,
        note=f"line: predicted = measured; dashed: ±{', ±'.join(f'{100 * band:.0f} %' for band in bands)}",
        alone=alone,
        sheet=picture_sheet() if alone else "",
    )
    return standalone(made) if alone else made


def _styles(points: Sequence[Point]) -> dict[str, str]:
    """The colour of each group, in order of appearance."""
    return {group: f"c{min(index, COLOURS)}" for index, group in enumerate(dict.fromkeys(one.group for one in points))}


def _tooltip(point: Point, text: Callable[[float], str]) -> str:
    error = signed_percent(point.predicted / point.measured - 1)
    return f"{point.label}: predicted {text(point.predicted)}, measured {text(point.measured)} ({error})"


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    for point in points:
        if not (point.measured > 0 and point.predicted > 0):
            raise ContentError("a logarithmic picture needs positive values", where=point.label)
    values = [value for point in points for value in (point.measured, point.predicted)] or [1.0, 10.0]
    margin = max(1.1, (max(values) / min(values)) ** 0.06)
    low, high = min(values) / margin, max(values) * margin
    centre = math.sqrt(low * high)
    return (low, high) if high / low >= 4 else (centre / 2, centre * 2)
