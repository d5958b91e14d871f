"""A value with its interval as a line and a dot, to be compared down a column."""

from opmark.pages.template import render


def interval(value: float, low: float, high: float, *, end: float = 1.05, digits: int = 3) -> str:
    """SVG markup of `value` in [low, high] on a scale from 0 to `end`; a grid line stands at 1."""

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
