"""Gantt charts: positions of bars, tooltips, legends and stacks."""

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from opmark.pages.gantt import TRANSFER, Bar, GanttTimeline, gantt, timeline_picture

SVG = "{http://www.w3.org/2000/svg}"


def bar(lane: str, start_ns: int, end_ns: int, kind: str = "conv", label: str = "a") -> Bar:
    return Bar(lane=lane, start_ns=start_ns, end_ns=end_ns, label=label, kind=kind)


def rectangles(picture: str) -> list[tuple[str, float, float, str]]:
    """Class, left, width and tooltip of every bar."""
    root = ElementTree.fromstring(f"<div>{picture}</div>")
    found = []
    for parent in root.iter():
        for item in parent.findall(f"{SVG}rect"):
            tooltip = item.find(f"{SVG}title")
            if tooltip is not None:
                place = parent if parent.get("x", "").endswith("%") else item
                left, width = (float(place.get(key, "0").rstrip("%")) for key in ("x", "width"))
                found.append((item.get("class", ""), left, width, tooltip.text or ""))
    return found


def test_bars_are_where_their_times_are() -> None:
    picture = gantt([bar("d0", 0, 250), bar("d1", 500, 1000, "gemm"), bar("d0 → d1", 250, 500, TRANSFER, "t")])
    found = {tooltip.split(":")[0]: (left, width) for _, left, width, tooltip in rectangles(picture)}
    assert found == {"a (conv)": (0, 25), "a (gemm)": (50, 50), "t": (25, 25)}


def test_tooltips_tell_name_duration_and_times() -> None:
    ((_, _, _, tooltip),) = rectangles(gantt([bar("d", 1000, 3500, "conv", "mixed/1x1")]))
    assert tooltip == "mixed/1x1 (conv): 2.50 µs at 1.00 µs"


def test_names_are_escaped() -> None:
    picture = gantt([bar("<b>", 0, 10, "k", '"><script>')], title="a < b")
    assert "<script>" not in picture
    assert "&lt;b&gt;" in picture
    assert "a &lt; b" in picture


def test_the_longest_kinds_get_colours_and_the_rest_is_grey() -> None:
    bars = [bar("d", 100 * index, 100 * index + index + 1, f"kind{index}") for index in range(12)]
    picture = gantt([*bars, bar("l", 0, 5, TRANSFER)])
    assert "4 more" in picture
    styles = {tooltip.split("(")[1].split(")")[0]: style.split()[0] for style, *_, tooltip in rectangles(picture)[:12]}
    assert styles["kind11"] == "c0"
    assert styles["kind0"] == styles["kind3"] == "c8"
    assert len({styles[f"kind{index}"] for index in range(4, 12)}) == 8


def test_overlapping_bars_of_one_lane_are_stacked() -> None:
    picture = gantt([bar("d", 0, 10, label="a"), bar("d", 5, 15, label="b"), bar("d", 10, 20, label="c")])
    root = ElementTree.fromstring(f"<div>{picture}</div>")
    tops = {
        title.text.split(" ")[0]: (item.get("y"), item.get("height"))
        for item in root.iter(f"{SVG}rect")
        for title in item.findall(f"{SVG}title")
        if title.text
    }
    assert tops["a"] == tops["c"] != tops["b"]
    assert {height for _, height in tops.values()} == {"11"}


def test_named_lanes_stay_without_bars() -> None:
    picture = gantt([bar("d0", 0, 10)], lanes=("d0", "d1"))
    assert "100 % busy" in picture
    assert "idle" in picture
    assert picture.index(">d0<") < picture.index(">d1<")


def test_an_empty_schedule_is_a_picture_too() -> None:
    assert rectangles(gantt([])) == []


def test_two_thousand_kernels_stay_small() -> None:
    picture = gantt([bar(f"d{i % 3}", 10 * i, 10 * i + 9, f"kind{i % 9}", f"node_{i}") for i in range(2000)])
    assert len(rectangles(picture)) == 2000
    assert len(picture) < 500_000


def test_a_picture_of_its_own_is_one_svg_file_with_its_look_and_legend() -> None:
    picture = gantt([bar("d", 0, 10)], alone=True)
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert ".c0 { fill: #" in (root.findtext(f"{SVG}style") or "")
    assert "var(" not in picture, "programs that show a file know no variables"
    assert any("conv 100 %" in "".join(text.itertext()) for text in root.iter(f"{SVG}text"))


def test_same_schedule_same_bytes() -> None:
    bars = [bar("d", 0, 10, "a"), bar("d", 10, 20, "b")]
    assert gantt(bars) == gantt(bars[::-1])


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)), min_size=1, max_size=30))
def test_nothing_leaves_the_picture(spans: list[tuple[int, int]]) -> None:
    picture = gantt([bar("d", start, start + length) for start, length in spans])
    for _, left, width, _ in rectangles(picture):
        assert left >= 0
        assert left + width <= 100.001


def test_timelines_draw_themselves_or_nothing() -> None:
    timeline = GanttTimeline(lanes=("d",), bars=(bar("d", 0, 10),))
    assert len(rectangles(timeline_picture(timeline, "x"))) == 1
    assert timeline_picture(None, "x") == ""
    assert re.search(r"<title>x</title>", timeline_picture(timeline, "x"))
