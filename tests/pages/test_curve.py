"""Lines over a logarithmic axis."""

import pytest

from opmark.pages.curve import Line, curve


def test_a_curve_needs_points_and_marks_every_one() -> None:
    line = Line(label="a", points=((10.0, 0.5), (1000.0, 0.1)))
    picture = curve([line], across="kernels", down="error", title="Learning")
    assert picture.count('<circle class="point c0"') == 2
    assert "a: 10.0 % at 1,000" in picture
    alone = curve([Line(label="a", points=((10.0, 0.5),))], across="kernels", down="error", title="t")
    assert "NaN" not in alone
    with pytest.raises(ValueError, match="needs points"):
        curve([Line(label="a", points=())], across="kernels", down="error", title="t")
