from dataclasses import replace
from pathlib import Path

import pytest

from opmark.core.errors import ContentError
from opmark.studies.active_sampling.curve import (
    FILE,
    AccuracyCurve,
    AccuracyPoint,
    TargetAccuracy,
    curve_page,
    curve_picture,
    read_curve,
    write_curve,
)

ACCURACY = TargetAccuracy(median=0.05, p90=0.2, acc10=0.7, n=40, held_out=0.06)
CURVE = AccuracyCurve(
    suite="mine",
    target_error=0.05,
    stopped="the time is up",
    points=(
        AccuracyPoint(seconds=60.0, kernels=100, targets={"a-t1": ACCURACY, "<b>-t1": ACCURACY}),
        AccuracyPoint(seconds=120.0, kernels=300, targets={"a-t1": replace(ACCURACY, median=0.03)}),
    ),
)


def test_a_curve_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_curve(tmp_path) is None
    write_curve(CURVE, tmp_path)
    assert read_curve(tmp_path) == CURVE
    (tmp_path / FILE).write_text('{"schema": 1, "suite": "mine"}')
    with pytest.raises(ContentError, match="target_error: missing"):
        read_curve(tmp_path)


def test_every_point_is_in_the_picture_and_in_the_table() -> None:
    picture = curve_picture(CURVE)
    assert picture.count("<polyline") == 4
    assert picture.count('<circle class="point') == 3
    assert "a-t1 after 2 min 00 s, 300 kernels: median 3.0 %" in picture
    page = curve_page(CURVE)
    assert "&lt;b&gt;-t1" in page
    assert "<b>-t1" not in page
    assert page.count("<tr>") == 1 + 3


def test_a_curve_without_a_point_is_still_a_picture() -> None:
    assert "<svg" in curve_picture(AccuracyCurve(suite="mine", target_error=0.05))
