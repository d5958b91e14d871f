"""The parts of a Gantt chart beside its bars: arrows of transfers, and memory curves of devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opmark.core.units import format_bytes, format_ns

CURVE_PX = 30
# With more arrows a chart is unreadable; the longest transfers are kept.
ARROWS_AT_MOST = 200
# Curves are drawn in a box of this width, which is stretched to the width of the chart.
BOX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """A transfer from one lane to another, from the start of its first hop to the end of its last."""

    source: str
    destination: str
    start_ns: int
    end_ns: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """The used memory of a device as (ns, bytes from then on), ascending; `limit_bytes` is its capacity."""

    lane: str
    steps: tuple[tuple[int, int], ...]
    limit_bytes: int

    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes in use."""
        return max((held for _, held in self.steps), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """An arrow in chart coordinates: percent across, pixels down."""

    x1: str
    y1: int
    x2: str
    y2: int
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A memory curve in chart coordinates; `area` is a path in a box of width `BOX` and height `CURVE_PX`."""

    caption: str
    peak: str
    top: int
    area: str


def strokes(arrows: Sequence[Arrow], end_ns: int, middles: Mapping[str, int]) -> list[Stroke]:
    """The longest arrows between lanes, in order of time; `middles` gives the height of each lane, in pixels."""
    drawn = [arrow for arrow in arrows if {arrow.source, arrow.destination} <= middles.keys()]
    longest = sorted(drawn, key=lambda one: (one.start_ns - one.end_ns, one.start_ns, one.label, one.destination))
    return [
        Stroke(
            x1=f"{100 * arrow.start_ns / end_ns:.3f}",
            y1=middles[arrow.source],
            x2=f"{100 * arrow.end_ns / end_ns:.3f}",
            y2=middles[arrow.destination],
            tooltip=f"{arrow.label}: {arrow.source} → {arrow.destination}, {format_ns(arrow.end_ns - arrow.start_ns)}",
        )
        for arrow in sorted(longest[:ARROWS_AT_MOST], key=lambda one: (one.start_ns, one.end_ns, one.label))
    ]


def strips(curves: Sequence[MemoryCurve], end_ns: int, top: int, pitch: int) -> list[Strip]:
    """One strip per device below `top`, each scaled to its own peak, so that small devices stay readable."""
    return [
        Strip(
            caption=f"{curve.lane}: memory",
            peak=f"peak {format_bytes(curve.peak_bytes)} of {format_bytes(curve.limit_bytes)}",
            top=top + number * pitch,
            area=_area(curve, end_ns),
        )
        for number, curve in enumerate(curves)
    ]


def _area(curve: MemoryCurve, end_ns: int) -> str:
    """A closed path; of the steps within one thousandth of the width only the largest is drawn."""
    highest: dict[int, int] = {}
    last: dict[int, int] = {}
    for time, held in curve.steps:
        place = min(time * 1000 // end_ns, 1000)
        highest[place] = max(highest.get(place, 0), held)
        last[place] = held
    peak = curve.peak_bytes or 1
    path, before = f"M0 {CURVE_PX}", None
    for place, held in sorted(highest.items()):
        for across, value in ((place, held), (place + 1, last[place])):
            height = round(CURVE_PX - (CURVE_PX - 2) * value / peak, 1)
            if height != before:
                path += f"H{min(across * BOX // 1000, BOX)}V{height:g}"
                before = height
    return f"{path}H{BOX}V{CURVE_PX}z"
