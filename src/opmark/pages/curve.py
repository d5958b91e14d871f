"""Line charts over a logarithmic axis, such as error over the number of samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opmark.pages.axis import linear_ticks, log_fraction, log_ticks
from opmark.pages.template import percent, render

COLOURS = 8
WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 12, 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named line of (x, y) points, with positive and ascending x."""

    label: str
    points: tuple[tuple[float, float], ...]


def curve(
    lines: Sequence[Line],
    *,
    across: str,
    down: str,
    title: str,
    text: Callable[[float], str] = lambda value: f"{value:,.0f}",
    value_text: Callable[[float], str] = percent,
) -> str:
    """The chart as SVG markup with a legend; `across` and `down` name the axes, and y starts at 0.

    Raises `ValueError` without any point.
    """
    everything = [point for line in lines for point in line.points]
    if not everything:
        raise ValueError("a curve needs points")
    low, high = min(x for x, _ in everything), max(x for x, _ in everything)
    if high < 2 * low:
        low, high = low / 1.5, high * 1.5
    top = 1.08 * max(y for _, y in everything) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * log_fraction(x, low, high),
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top,
        )

    return render(
        "pages/curve.svg.jinja",
        lines=[
            {
                "label": line.label,
                "style": f"c{min(index, COLOURS)}",
                "places": [(*place(x, y), f"{line.label}: {value_text(y)} at {text(x)}") for x, y in line.points],
            }
            for index, line in enumerate(lines)
        ],
        across_ticks=[(place(tick.value, 0)[0], tick.label) for tick in log_ticks(low, high, text)],
        down_ticks=[(place(low, tick.value)[1], tick.label) for tick in linear_ticks(0, top, 5, value_text)],
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        across=across,
        down=down,
        title=title,
    )
