"""Error by kind: a table whose bars are readable without the numbers, and the other way round."""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.pages.template import render


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """Absolute relative errors of one kind, as fractions: the middle one and the one that 90 % stay under."""

    label: str
    count: int
    median: float
    p90: float
    noise_floor: float | None = None


def error_bars(rows: Sequence[ErrorBar], *, what: str = "kind", as_given: bool = False) -> str:
    """A table: the bar is the median error, the mark the 90th percentile; largest median first unless `as_given`."""
    ordered = rows if as_given else sorted(rows, key=lambda row: (-row.median, row.label))
    scale = max([value for row in rows for value in (row.median, row.p90)], default=0.0) or 1.0
    return render(
        "pages/bars.html.jinja",
        rows=[(row, 100 * row.median / scale, 100 * row.p90 / scale) for row in ordered],
        what=what,
        has_floor=any(row.noise_floor is not None for row in rows),
    )
