"""Performance profiles: the share of instances that each entry solves within a factor of the best known cost.

Dolan and Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming 91, 2002.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opmark.pages.axis import linear_ticks
from opmark.pages.template import percent, render

COLOURS = 8
FACTOR_AT_MOST = 2.0
MARKS = (1.0, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0)
WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 12, 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """An entry's ratio of cost to best known cost per instance; None without a valid answer."""

    label: str
    ratios: tuple[float | None, ...]

    def within(self, factor: float) -> float:
        """The share of instances with a cost of at most `factor` times the best known cost."""
        solved = sum(ratio is not None and ratio <= factor * (1 + 1e-12) for ratio in self.ratios)
        return solved / len(self.ratios) if self.ratios else 0.0


def profile_curve(entries: Sequence[Profiled], *, title: str = "Performance profile") -> str:
    """One step line per entry over factors from 1 to 2, with a table of the data; after eight colours come dashes."""

    def across(factor: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (factor - 1) / (FACTOR_AT_MOST - 1)

    def down(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / 1.02

    lines = []
    for number, entry in enumerate(entries):
        turns = sorted({ratio for ratio in entry.ratios if ratio is not None and 1 < ratio <= FACTOR_AT_MOST})
        share = entry.within(1.0)
        points = [(across(1.0), down(share))]
        for factor in turns:
            points.append((across(factor), down(share)))
            share = entry.within(factor)
            points.append((across(factor), down(share)))
        points.append((across(FACTOR_AT_MOST), down(share)))
        lines.append(
            {"label": entry.label, "style": f"c{number % COLOURS}", "dash": number // COLOURS, "points": points}
        )
    ticks = linear_ticks(1.0, FACTOR_AT_MOST, 5, lambda value: f"{value:.1f}×")
    return render(
        "pages/profile_curve.html.jinja",
        lines=lines,
        across_ticks=[(across(tick.value), tick.label) for tick in ticks],
        down_ticks=[(down(share), percent(share, 0)) for share in (0, 0.25, 0.5, 0.75, 1)],
        frame={"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        size=(WIDTH, HEIGHT),
        title=title,
        marks=[f"{factor:g}×" for factor in MARKS],
        rows=[(entry.label, [entry.within(factor) for factor in MARKS]) for entry in entries],
    )
