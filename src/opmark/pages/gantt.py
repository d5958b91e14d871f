"""Gantt charts of schedules: devices and links are lanes, kernels and transfers are bars over one time axis."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from opmark.core.canonical import content_id
from opmark.core.units import format_ns
from opmark.pages.axis import Tick, linear_ticks
from opmark.pages.overlay import BOX, CURVE_PX, Arrow, MemoryCurve, strips, strokes
from opmark.pages.template import picture_sheet, render, standalone

TRANSFER = "transfer"
COLOURS = 8
LANE_PX = 22
LABEL_PX = 18
AXIS_PX = 22
# A standalone SVG file has a fixed width, a margin, and its legend inside.
ALONE_PX = 900
MARGIN_PX = 18
LETTER_PX = 7
# A label is drawn where it fits on a phone, on which a bar of p percent is about 3.4·p pixels wide.
PERCENT_PER_LETTER = 2.1
PERCENT_AROUND = 2.6
# Bars wider than this get an edge, which separates neighbours of one kind.
EDGE_PERCENT = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar in a lane from `start_ns` to `end_ns`; `kind` chooses its colour (`transfer` on links)."""

    lane: str
    start_ns: int
    end_ns: int
    label: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GanttTimeline:
    """A schedule to draw; `lanes` (devices, then links) from the top, `memory` per device where it is known.

    Two schedules of one `key` are equal; it is empty where nobody has named them.
    """

    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    arrows: tuple[Arrow, ...] = ()
    memory: tuple[MemoryCurve, ...] = ()
    key: str = field(default="", compare=False)

    @property
    def identity(self) -> str:
        """The key, or a hash of the whole schedule."""
        return self.key or content_id(self)


def timeline_picture(timeline: GanttTimeline | None, title: str) -> str:
    """The Gantt chart of a timeline; empty for None."""
    if timeline is None:
        return ""
    return gantt(timeline.bars, lanes=timeline.lanes, title=title, arrows=timeline.arrows, memory=timeline.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """A bar in picture coordinates: percent of the width across, pixels down."""

    left: str
    width: str
    top: int
    height: int
    style: str
    name: str
    tooltip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of the chart with its caption."""

    label: str
    busy: str
    top: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One entry of the legend; `left` and `top` are its position in a standalone file, in pixels."""

    style: str
    label: str
    share: float
    left: int = 0
    top: int = 0


def gantt(
    bars: Iterable[Bar],
    *,
    lanes: Sequence[str] = (),
    end_ns: int | None = None,
    title: str = "",
    alone: bool = False,
    arrows: Sequence[Arrow] = (),
    memory: Sequence[MemoryCurve] = (),
) -> str:
    """The schedule as SVG markup with a legend in HTML, or with `alone` as a standalone SVG file.

    `lanes` gives the order from the top and keeps lanes without bars; other lanes follow by name. Overlapping bars of a
    lane (slots > 1) are stacked. `end_ns` is the end of the axis. `memory` is drawn below the lanes. A page's
    script adds zooming; without it the whole schedule is shown.
    """
    drawn = sorted(bars, key=lambda bar: (bar.start_ns, bar.end_ns, bar.label))
    end = max([bar.end_ns for bar in drawn] if end_ns is None else [end_ns], default=0) or 1
    names = [*lanes, *sorted({bar.lane for bar in drawn} - set(lanes))]
    styles, legend = _colours(drawn)
    rows: list[Lane] = []
    rectangles: list[Rectangle] = []
    top = 0
    for name in names:
        own = [bar for bar in drawn if bar.lane == name]
        levels, depth = _stack(own)
        busy = sum(bar.end_ns - bar.start_ns for bar in own) / end
        rows.append(Lane(label=name, busy=f"{100 * busy:.0f} % busy" if own else "idle", top=top))
        for bar, level in zip(own, levels, strict=True):
            height = LANE_PX // depth
            rectangles.append(_rectangle(bar, end, (top + LABEL_PX + level * height, height), styles[bar.kind]))
        top += LABEL_PX + LANE_PX + 6
    legend = _laid_out(legend)
    pitch = LABEL_PX + CURVE_PX + 4
    curves = strips(memory, end, top, pitch)
    middles = {row.label: row.top + LABEL_PX + LANE_PX // 2 for row in rows}
    top += pitch * len(curves)
    picture = render(
        "pages/gantt.svg.jinja",
        rows=rows,
        rectangles=rectangles,
        arrows=strokes(arrows, end, middles),
        curves=curves,
        curve_px=CURVE_PX,
        box=BOX,
        ticks=_ticks(end, 5),
        fine_ticks=_ticks(end, 40),
        legend=legend,
        title=title or f"Schedule of {len(drawn)} kernels and transfers, {format_ns(end)} in all",
        height=top + AXIS_PX,
        width=ALONE_PX,
        margin=MARGIN_PX,
        legend_height=max(key.top for key in legend) + 24 if legend else 0,
        bottom=top,
        bar_px=LANE_PX,
        label_px=LABEL_PX,
        alone=alone,
        sheet=picture_sheet() if alone else "",
    )
    return standalone(picture) if alone else picture


def _ticks(end: int, about: int) -> list[Tick]:
    return [tick for tick in linear_ticks(0, end, about, format_ns) if tick.fraction <= 0.94]


def _rectangle(bar: Bar, end: int, place: tuple[int, int], style: str) -> Rectangle:
    top, height = place
    width = 100 * (bar.end_ns - bar.start_ns) / end
    names = () if height < LANE_PX else (bar.label,) if bar.kind == TRANSFER else (bar.label, bar.kind)
    name = next((name for name in names if width >= PERCENT_AROUND + PERCENT_PER_LETTER * len(name)), "")
    took = format_ns(bar.end_ns - bar.start_ns)
    what = bar.label if bar.kind in {bar.label, TRANSFER} else f"{bar.label} ({bar.kind})"
    return Rectangle(
        left=f"{100 * bar.start_ns / end:.3f}".rstrip("0").rstrip("."),
        width=f"{width:.3f}".rstrip("0").rstrip(".") or "0",
        top=top,
        height=height,
        style=f"{style} edge" if width > EDGE_PERCENT else style,
        name=name,
        tooltip=f"{what}: {took} at {format_ns(bar.start_ns)}",
    )


def _colours(bars: Sequence[Bar]) -> tuple[dict[str, str], list[Key]]:
    """Colours of kinds by total time; the kinds after the last colour are grey, and transfers have their own colour."""
    time_ns: Counter[str] = Counter()
    for bar in bars:
        time_ns[bar.kind] += bar.end_ns - bar.start_ns
    kinds = sorted((kind for kind in time_ns if kind != TRANSFER), key=lambda kind: (-time_ns[kind], kind))
    total = sum(time_ns[kind] for kind in kinds) or 1
    styles = {kind: f"c{min(index, COLOURS)}" for index, kind in enumerate(kinds)}
    legend = [Key(style=styles[kind], label=kind, share=time_ns[kind] / total) for kind in kinds[:COLOURS]]
    rest = kinds[COLOURS:]
    if rest:
        share = sum(time_ns[kind] for kind in rest) / total
        legend.append(Key(style=f"c{COLOURS}", label=f"{len(rest)} more", share=share))
    if TRANSFER in time_ns:
        styles[TRANSFER] = TRANSFER
        legend.append(Key(style=TRANSFER, label=TRANSFER, share=-1))
    return styles, legend


def _laid_out(keys: Sequence[Key]) -> list[Key]:
    """Place the keys side by side, in as many rows as a standalone file needs."""
    placed = []
    left = row = 0
    for key in keys:
        width = 34 + LETTER_PX * len(key.label) + (38 if key.share >= 0 else 0)
        if left and left + width > ALONE_PX - 2 * MARGIN_PX:
            left, row = 0, row + 1
        placed.append(replace(key, left=left, top=20 * row))
        left += width
    return placed


def _stack(bars: Sequence[Bar]) -> tuple[list[int], int]:
    """A level for each bar (in start order), without overlaps on a level, and the number of levels."""
    free_from: list[int] = []
    levels = []
    for bar in bars:
        level = next((index for index, time in enumerate(free_from) if time <= bar.start_ns), len(free_from))
        if level == len(free_from):
            free_from.append(0)
        free_from[level] = bar.end_ns
        levels.append(level)
    return levels, max(len(free_from), 1)
