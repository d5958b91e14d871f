"""Scatter plots, error bars, intervals and axes: marks are at the right positions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.pages.axis import linear_ticks, log_fraction, log_ticks
from opmark.pages.bars import ErrorBar, error_bars, interval
from opmark.pages.scatter import Point, scatter
from opmark.pages.template import percent, render, signed_percent


@given(st.floats(1, 1e9), st.floats(1.01, 1e6))
def test_linear_marks_are_round_and_inside(low: float, factor: float) -> None:
    high = low * factor
    ticks = linear_ticks(low, high, 5, str)
    assert 1 <= len(ticks) <= 11
    assert all(-1e-6 <= tick.fraction <= 1 + 1e-6 for tick in ticks)


def test_linear_marks_by_hand() -> None:
    assert [tick.value for tick in linear_ticks(0, 1000, 5, str)] == [0, 200, 400, 600, 800, 1000]
    assert linear_ticks(5, 5, 5, str) == []


@given(st.floats(1e-3, 1e9), st.floats(4, 1e8))
def test_logarithmic_marks_are_inside(low: float, factor: float) -> None:
    ticks = log_ticks(low, low * factor, str)
    assert len(ticks) >= 1
    assert all(-0.001 <= tick.fraction <= 1.001 for tick in ticks)


def test_logarithmic_marks_by_hand() -> None:
    assert [tick.value for tick in log_ticks(1, 1000, str)] == pytest.approx([1, 10, 100, 1000])
    assert [tick.value for tick in log_ticks(2, 40, str)] == pytest.approx([3, 10, 30])
    assert log_fraction(10, 1, 100) == pytest.approx(0.5)


def circles(picture: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in re.findall(r'<circle class="point [^>]*cx="([\d.]+)" cy="([\d.]+)"', picture)
    ]


def test_a_perfect_prediction_lies_on_the_line() -> None:
    picture = scatter([Point(label="net", measured=1e6, predicted=1e6), Point(label="b", measured=1e8, predicted=1e8)])
    line = re.search(r'class="ideal" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', picture)
    assert line
    x1, y1, x2, y2 = (float(part) for part in line.groups())
    for x, y in circles(picture):
        assert y == pytest.approx(y1 + (y2 - y1) * (x - x1) / (x2 - x1), abs=0.2)


def test_too_high_is_above_and_the_tooltip_says_how_much() -> None:
    picture = scatter(
        [Point(label="net", measured=1e6, predicted=1.5e6), Point(label="b", measured=1e6, predicted=1e6)]
    )
    (_, high), (_, right) = circles(picture)
    assert high < right
    assert "net: predicted 1.50 ms, measured 1.00 ms (+50.0 %)" in picture


def test_groups_are_named_once_and_intervals_drawn() -> None:
    points = [Point(label=str(i), measured=i + 1, predicted=i + 1, group="g", low=1, high=9) for i in range(3)]
    picture = scatter(points)
    assert picture.count("</svg>g</li>") == 1
    assert picture.count('class="error"') == 3
    assert "±10 %" in picture


def test_a_logarithm_of_nothing_is_refused() -> None:
    with pytest.raises(ContentError, match="positive"):
        scatter([Point(label="zero", measured=0, predicted=1)])


def test_an_empty_scatter_and_a_lonely_one() -> None:
    assert circles(scatter([])) == []
    assert "<style>" in scatter([], alone=True)


def test_error_bars_are_sorted_and_scaled() -> None:
    table = error_bars(
        [
            ErrorBar(label="gemm", count=7, median=0.02, p90=0.05),
            ErrorBar(label="conv", count=9, median=0.1, p90=0.2, noise_floor=0.01),
        ]
    )
    assert table.index("conv") < table.index("gemm")
    assert "width: 50.00%" in table
    assert "left: 100.00%" in table
    assert "noise floor" in table
    assert "noise floor" not in error_bars([ErrorBar(label="gemm", count=7, median=0.02, p90=0.05)])


def test_an_interval_spans_its_ends() -> None:
    picture = interval(0.5, 0.25, 0.75, end=1.0)
    assert 'class="span" x1="25.00%" x2="75.00%"' in picture
    assert 'cx="50.00%"' in picture
    assert "0.500, interval 0.250 to 0.750" in picture


def test_numbers_for_people() -> None:
    assert [percent(0.1234), percent(None), signed_percent(-0.05), signed_percent(None)] == [
        "12.3 %",
        "–",
        "−5.0 %",
        "–",
    ]


def test_a_name_missing_in_a_template_is_an_error() -> None:
    import jinja2

    with pytest.raises(jinja2.UndefinedError):
        render("pages/bars.html.jinja", rows=[])


def test_a_picture_of_its_own_names_groups_and_outliers() -> None:
    points = [
        Point(label="near", measured=1e6, predicted=1.02e6, group="cpu"),
        Point(label="far", measured=1e6, predicted=1.5e6, group="gpu"),
    ]
    picture = scatter(points, alone=True, named_beyond=0.1)
    assert "var(" not in picture
    assert ">far</text>" in picture
    assert ">near</text>" not in picture
    assert ">cpu</text>" in picture
    assert ">gpu</text>" in picture
    assert ">far</text>" not in scatter(points)
