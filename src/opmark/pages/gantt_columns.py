"""Timelines as short JSON: whole for a cache, and rounded for a page's script to draw (`draw.js`)."""

import gzip
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from opmark.core.units import format_bytes
from opmark.pages.gantt import TRANSFER, Bar, GanttTimeline
from opmark.pages.overlay import ARROWS_AT_MOST, Arrow, MemoryCurve

# A script draws times to a hundred-thousandth of the whole, and memory in so many steps across and down.
FINEST, ACROSS, DOWN = 100_000, 120, 50


def columns_of(timeline: GanttTimeline) -> list[Any]:
    """The whole timeline as lists of JSON types."""
    return [
        timeline.lanes,
        [(bar.lane, bar.start_ns, bar.end_ns, bar.label, bar.kind) for bar in timeline.bars],
        [(one.source, one.destination, one.start_ns, one.end_ns, one.label) for one in timeline.arrows],
        [(one.lane, one.limit_bytes, one.steps) for one in timeline.memory],
    ]


def timeline_in(columns: Sequence[Any], *, key: str = "") -> GanttTimeline:
    """The timeline of `columns_of`. Raises `ValueError` or `TypeError` for anything else."""
    lanes, bars, arrows, memory = columns
    return GanttTimeline(
        key=key,
        lanes=tuple(lanes),
        bars=tuple(
            Bar(lane=lane, start_ns=start, end_ns=end, label=label, kind=kind) for lane, start, end, label, kind in bars
        ),
        arrows=tuple(
            Arrow(source=source, destination=destination, start_ns=start, end_ns=end, label=label)
            for source, destination, start, end, label in arrows
        ),
        memory=tuple(
            MemoryCurve(lane=lane, limit_bytes=limit, steps=tuple((time, held) for time, held in steps))
            for lane, limit, steps in memory
        ),
    )


def schedule_script(timelines: Mapping[str, GanttTimeline], name: str) -> str:
    """The schedules of one instance as a script that hands them, packed, to `draw.js`; equal ones are stored once.

    Labels are numbers of one table. A bar is its gap to the bar before it in its lane, its length, its label and, at
    the label's first use, its kind.
    """
    labels: dict[str, int] = {}
    kinds: dict[str, int] = {}
    kind_of: dict[int, int] = {}
    schedules: dict[str, int] = {}
    entries = {}
    for entry, timeline in timelines.items():
        text = json.dumps(_drawable(timeline, labels, kinds, kind_of), separators=(",", ":"), ensure_ascii=False)
        entries[entry] = schedules.setdefault(text, len(schedules))
    head = json.dumps(
        {
            "labels": list(labels),
            "kinds": list(kinds),
            "kindOf": [kind_of.get(number, 0) for number in range(len(labels))],
            "entries": entries,
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )
    packed = gzip.compress(f"[{head},[{','.join(schedules)}]]".encode(), compresslevel=6, mtime=0)
    return f'drawSchedules({json.dumps(name)},"{b64encode(packed).decode()}");\n'


def _drawable(
    timeline: GanttTimeline, labels: dict[str, int], kinds: dict[str, int], kind_of: dict[int, int]
) -> dict[str, Any]:
    end = max([bar.end_ns for bar in timeline.bars], default=1) or 1
    step = max(1, end // FINEST)
    lanes = [*timeline.lanes, *sorted({bar.lane for bar in timeline.bars} - set(timeline.lanes))]
    number = {lane: index for index, lane in enumerate(lanes)}
    own: list[list[Bar]] = [[] for _ in lanes]
    for bar in sorted(timeline.bars, key=lambda one: (one.start_ns, one.end_ns, one.label)):
        own[number[bar.lane]].append(bar)
    rows: list[list[int]] = []
    for bars in own:
        row: list[int] = []
        before = 0
        for bar in bars:
            start, finish = bar.start_ns // step, max(bar.start_ns // step + 1, bar.end_ns // step)
            # a tensor and a unit may have one name
            label = labels.setdefault(f"{bar.label}\t" if bar.kind == TRANSFER else bar.label, len(labels))
            kind_of[label] = kinds.setdefault(bar.kind, len(kinds))
            row += [start - before, finish - start, label]
            before = finish
        rows.append(row)
    longest = sorted(timeline.arrows, key=lambda one: (one.start_ns - one.end_ns, one.start_ns))[:ARROWS_AT_MOST]
    arrows = [
        (
            number[one.source],
            number[one.destination],
            one.start_ns // step,
            one.end_ns // step,
            labels.setdefault(f"{one.label}\t", len(labels)),
        )
        for one in longest
        if one.source in number and one.destination in number
    ]
    memory = [
        (
            number.get(one.lane, 0),
            f"peak {format_bytes(one.peak_bytes)} of {format_bytes(one.limit_bytes)}",
            _levels(one, end),
        )
        for one in timeline.memory
    ]
    return {"ns": end, "step": step, "lanes": lanes, "bars": rows, "arrows": arrows, "memory": memory}


def _levels(curve: MemoryCurve, end_ns: int) -> list[int]:
    """The curve as (place, height) pairs in a grid of `ACROSS` by `DOWN`; the largest step of a column is drawn."""
    highest: dict[int, int] = {}
    last: dict[int, int] = {}
    for time, held in curve.steps:
        place = min(time * ACROSS // end_ns, ACROSS - 1)
        highest[place] = max(highest.get(place, 0), held)
        last[place] = held
    peak = curve.peak_bytes or 1
    levels: list[int] = []
    before = -1
    for place, held in sorted(highest.items()):
        for across, value in ((place, held), (place + 1, last[place])):
            height = round(DOWN * value / peak)
            if height != before:
                levels += [across, height]
                before = height
    return levels
