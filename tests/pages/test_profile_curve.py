"""Performance profiles: shares at factors, as steps and as numbers."""

import re

import pytest

from opmark.pages.profile_curve import Profiled, profile_curve


def test_shares_rise_with_the_factor() -> None:
    entry = Profiled(label="heft", ratios=(1.0, 1.2, 3.0, None))
    assert [entry.within(factor) for factor in (1.0, 1.19, 1.2, 2.0)] == [0.25, 0.25, 0.5, 0.5]
    assert Profiled(label="x", ratios=()).within(2) == 0


def test_a_line_steps_where_an_instance_is_reached() -> None:
    picture = profile_curve([Profiled(label="a <b>", ratios=(1.0, 1.5))])
    points = re.search(r'points="([^"]+)"', picture)
    assert points
    places = [tuple(map(float, point.split(","))) for point in points[1].split()]
    assert len(places) == 4
    assert places[1][0] == places[2][0] == pytest.approx(60 + 328 / 2)
    assert places[2][1] < places[1][1], "a higher share is further up"
    assert "a &lt;b&gt;" in picture
    assert "50 %" in picture


def test_thirty_lines_look_unlike() -> None:
    picture = profile_curve([Profiled(label=f"entry-{number}", ratios=(1.0, 1.5)) for number in range(30)])
    looks = re.findall(r'<polyline class="(dash\d)" style="stroke: var\(--(c\d)\)" points="(?!0,5)', picture)
    assert len(looks) == len(set(looks)) == 30
