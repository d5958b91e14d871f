"""Progress over the years: one dot per published method, and the line of the best so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.pages.axis import linear_ticks
from opmark.pages.template import render

WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 14, 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """A method with the year of its publication and its score."""

    label: str
    year: int
    score: float


def record_picture(methods: Sequence[Dated], *, title: str, today: Dated | None = None) -> str:
    """The scores over their years as SVG markup, with the best so far as a line; empty for fewer than two years.

    `today` is a method without a paper, drawn at the end under this word instead of its year.
    """
    dated = sorted([*methods, *([today] if today else [])], key=lambda one: (one.year, one.score))
    first, last = (dated[0].year, dated[-1].year) if dated else (0, 0)
    if first == last:
        return ""
    low = max(0.0, min(one.score for one in dated) - 0.05)

    def across(year: int) -> float:
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * (year - first) / (last - first)

    def down(score: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (score - low) / (1.02 - low)

    def when(one: Dated) -> str:
        return "today" if one is today else str(one.year)

    best, records, line = -1.0, [], []
    for one in dated:
        if one.score > best:
            line += [(across(one.year), down(max(best, low))), (across(one.year), down(one.score))]
            best = one.score
            records.append(one)
    line = [*line[1:], (across(last), down(best))]
    return render(
        "pages/records.html.jinja",
        dots=[
            (across(one.year), down(one.score), f"{one.label}, {when(one)}: {one.score:.3f}", one is today)
            for one in dated
        ],
        line=line,
        records=[(one.label, when(one), one.score) for one in records],
        across_ticks=[
            (across(round(tick.value)), str(round(tick.value)))
            for tick in linear_ticks(first, last, 6, lambda value: f"{value:.0f}")
            if tick.value == round(tick.value)
        ],
        down_ticks=[(down(tick.value), tick.label) for tick in linear_ticks(low, 1.0, 4, lambda value: f"{value:.2f}")],
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        title=title,
    )
