"""Timelines survive as columns, and scripts hold each schedule once."""

import gzip
import json
from base64 import b64decode

from hypothesis import given
from hypothesis import strategies as st

from opmark.pages.gantt import TRANSFER, Bar, GanttTimeline
from opmark.pages.gantt_columns import columns_of, schedule_script, timeline_in
from opmark.pages.overlay import Arrow, MemoryCurve

names = st.sampled_from(("a", "b", "unit </script> 1"))
times = st.integers(0, 10**10)


@st.composite
def timelines(draw: st.DrawFn) -> GanttTimeline:
    def spans() -> tuple[int, int]:
        start = draw(times)
        return start, start + draw(times)

    bars = []
    for _ in range(draw(st.integers(0, 6))):
        start, end = spans()
        bars.append(
            Bar(
                lane=draw(names),
                start_ns=start,
                end_ns=end,
                label=draw(names),
                kind=draw(st.sampled_from(("conv", TRANSFER))),
            )
        )
    start, end = spans()
    return GanttTimeline(
        lanes=("a", "b"),
        bars=tuple(bars),
        arrows=(Arrow(source="a", destination="b", start_ns=start, end_ns=end, label="t"),),
        memory=(MemoryCurve(lane="a", steps=((0, 3), (5, 1)), limit_bytes=9),),
    )


@given(timelines())
def test_columns_hold_everything(timeline: GanttTimeline) -> None:
    assert timeline_in(json.loads(json.dumps(columns_of(timeline)))) == timeline


def parts(script: str) -> tuple[str, dict[str, object], list[dict[str, object]]]:
    name, packed = json.loads("[" + script.removeprefix("drawSchedules(").removesuffix(");\n") + "]")
    shared, schedules = json.loads(gzip.decompress(b64decode(packed)))
    return name, shared, schedules


@given(timelines(), timelines())
def test_equal_schedules_are_stored_once(one: GanttTimeline, other: GanttTimeline) -> None:
    name, shared, schedules = parts(schedule_script({"x": one, "y": other, "z": one}, "instance"))
    assert name == "instance"
    entries = shared["entries"]
    assert isinstance(entries, dict)
    assert entries["x"] == entries["z"] == 0
    assert len(schedules) == len(set(entries.values()))


def test_a_bar_is_its_gap_its_length_and_its_label() -> None:
    bars = (
        Bar(lane="a", start_ns=5, end_ns=15, label="first", kind="conv"),
        Bar(lane="a", start_ns=20, end_ns=50, label="second", kind="conv"),
        Bar(lane="b", start_ns=0, end_ns=50, label="first", kind=TRANSFER),
    )
    _, shared, (schedule,) = parts(schedule_script({"x": GanttTimeline(lanes=("a", "b"), bars=bars)}, "i"))
    assert schedule["bars"] == [[5, 10, 0, 5, 30, 1], [0, 50, 2]]
    assert schedule["ns"] == 50
    # a tensor and a unit of one name are two labels
    assert shared["labels"] == ["first", "second", "first\t"]
    assert shared["kindOf"] == [0, 0, 1]


@given(timelines())
def test_a_schedule_is_known_by_its_key_or_its_content(timeline: GanttTimeline) -> None:
    read = timeline_in(columns_of(timeline), key="abc")
    assert (read.identity, read == timeline) == ("abc", True)
    assert timeline.identity == timeline_in(columns_of(timeline)).identity
