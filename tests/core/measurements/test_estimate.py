import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.measurements.estimate import half_width, label, median, quantile, quantiles, variation

samples = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=60)


@given(samples, st.floats(0, 1))
def test_a_quantile_lies_between_the_extremes_and_grows_with_its_fraction(values: list[float], fraction: float) -> None:
    assert min(values) <= quantile(values, fraction) <= max(values) * (1 + 1e-12)
    assert quantile(values, fraction / 2) <= quantile(values, fraction) * (1 + 1e-12)


def test_quantiles_interpolate_between_order_statistics() -> None:
    values = [10.0, 20.0, 30.0, 40.0, 50.0]
    assert quantiles(values, (0, 0.1, 0.5, 1)) == (10.0, 14.0, 30.0, 50.0)
    assert median([1.0, 2.0]) == 1.5
    assert label(values) == 14.0
    assert quantiles([], (0, 1)) == ()
    with pytest.raises(ValueError, match="no samples"):
        quantile([], 0.5)


def test_the_label_does_not_move_when_the_slow_half_gets_slower() -> None:
    calm = [100.0 + i for i in range(100)]
    disturbed = calm[:50] + [40 * ns for ns in calm[50:]]
    assert label(disturbed) == label(calm)


def test_half_width_shrinks_with_samples_and_is_infinite_for_a_handful() -> None:
    assert half_width([100.0] * 4) == math.inf
    assert half_width([100.0] * 50) == 0.0
    spread = [100.0 + (i * 37) % 50 for i in range(50)]
    assert half_width(spread * 20) < half_width(spread)


def test_variation_is_the_range_of_the_processes_over_their_median() -> None:
    assert variation([100.0]) is None
    assert variation([98.0, 100.0, 103.0]) == pytest.approx(0.05)
