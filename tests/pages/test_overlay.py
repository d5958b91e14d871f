"""Arrows and memory curves in chart coordinates."""

from opmark.pages import overlay
from opmark.pages.gantt import gantt
from opmark.pages.overlay import Arrow, MemoryCurve, strips, strokes


def arrow(start_ns: int, end_ns: int, destination: str = "b") -> Arrow:
    return Arrow(source="a", destination=destination, start_ns=start_ns, end_ns=end_ns, label="t")


def test_arrows_go_from_lane_to_lane_and_the_longest_stay(monkeypatch) -> None:
    (stroke,) = strokes([arrow(25, 50), arrow(0, 1, "elsewhere")], 100, {"a": 10, "b": 60})
    assert (stroke.x1, stroke.y1, stroke.x2, stroke.y2) == ("25.000", 10, "50.000", 60)
    assert stroke.tooltip == "t: a → b, 25.0 ns"
    monkeypatch.setattr(overlay, "ARROWS_AT_MOST", 1)
    assert [kept.x1 for kept in strokes([arrow(0, 1), arrow(5, 50)], 100, {"a": 1, "b": 2})] == ["5.000"]


def test_a_curve_reaches_its_peak_and_never_hides_it() -> None:
    curve = MemoryCurve(lane="a", steps=((0, 50), (500_000, 100), (500_001, 20)), limit_bytes=200)
    (strip,) = strips([curve], 1_000_000, 40, 52)
    assert (strip.top, strip.caption, strip.peak) == (40, "a: memory", "peak 100 B of 200 B")
    assert strip.area.startswith("M0 30H0V16")
    assert "H5000V2" in strip.area, "a peak of one ns is seen"
    assert strip.area.endswith("H10000V30z")
    assert MemoryCurve(lane="a", steps=(), limit_bytes=1).peak_bytes == 0


def test_a_schedule_shows_both() -> None:
    curve = MemoryCurve(lane="a", steps=((0, 7),), limit_bytes=9)
    picture = gantt([], lanes=("a", "b"), end_ns=10, arrows=[arrow(0, 10)], memory=[curve])
    assert 'class="arrow"' in picture
    assert "a: memory, peak 7.00 B of 9.00 B" in picture
