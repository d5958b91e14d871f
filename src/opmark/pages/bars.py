"""Marks inside tables: bars of errors by kind, and intervals as a line with a dot."""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.pages.template import render


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """Absolute relative errors of one kind, as fractions: the median and the 90th percentile."""

    label: str
    count: int
    median: float
    p90: float
    noise_floor: float | None = None


def error_bars(rows: Sequence[ErrorBar], *, what: str = "kind", as_given: bool = False) -> str:
    """A table: bars show median errors, marks 90th percentiles; the largest median comes first unless `as_given`."""
    ordered = rows if as_given else sorted(rows, key=lambda row: (-row.median, row.label))
    scale = max([value for row in rows for value in (row.median, row.p90)], default=0.0) or 1.0
    return render(
        "pages/bars.html.jinja",
        rows=[(row, 100 * row.median / scale, 100 * row.p90 / scale) for row in ordered],
        what=what,
        has_floor=any(row.noise_floor is not None for row in rows),
    )


def interval(value: float, low: float, high: float, *, end: float = 1.05, digits: int = 3) -> str:
    """SVG markup of `value` in [low, high] on a scale from 0 to `end`, with a grid line at 1."""

    def place(number: float) -> str:
        return f"{100 * min(max(number / end, 0.0), 1.0):.2f}%"

    return render(
        "pages/interval.svg.jinja",
        value=place(value),
        low=place(low),
        high=place(high),
        one=place(1.0),
        text=f"{value:.{digits}f}, interval {low:.{digits}f} to {high:.{digits}f}",
    )
