"""A peak is the largest rate that other rows support."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets import sample

from opmark.datasets.format.columns import kernel_row
from opmark.datasets.validation.peaks import FEWEST_ROWS, peaks, rates, supported_maximum

ordinary = st.lists(st.floats(1.0, 1.9), min_size=FEWEST_ROWS, max_size=200)


@given(ordinary)
def test_without_a_gap_the_peak_is_the_maximum(values: list[float]) -> None:
    assert supported_maximum(values) == max(values)


@given(ordinary, st.floats(4.0, 1e9))
def test_one_label_that_stands_alone_does_not_move_it(values: list[float], outlier: float) -> None:
    assert supported_maximum([outlier, *values]) == max(values)


def test_labels_that_support_each_other_do() -> None:
    assert supported_maximum([10.0] * 5 + [1.0] * 95) == 10.0


def test_few_rows_cannot_be_told_apart() -> None:
    assert supported_maximum([100.0] + [1.0] * (FEWEST_ROWS - 2)) == 100.0


def test_peaks_come_per_target_quantity_and_element_type() -> None:
    rows = [kernel_row(sample.measurement(kernel)) for kernel in sample.kernels(40)]
    found = {(peak.quantity, peak.dtype): peak for peak in peaks(rows)}
    assert set(found) == {("flops_per_s", "float32"), ("hot_bytes_per_s", ""), ("rotated_bytes_per_s", "")}
    assert found["flops_per_s", "float32"].rate == pytest.approx(5e10, rel=0.01)
    assert found["hot_bytes_per_s", ""].rate == pytest.approx(5e9, rel=0.01)
    assert all(peak.rows == 40 for peak in found.values())


def test_failed_rows_and_views_claim_no_rate() -> None:
    assert not list(rates(kernel_row(sample.without_latency(sample.kernels(1)[0]))))
    view = sample.measurement(sample.kernels(1, "softmax")[0], latency_hot_ns=1.0)
    assert not list(rates(kernel_row(view)))
    copy = sample.measurement(sample.kernels(1, "softmax")[0], latency_hot_ns=1000.0)
    assert {group[1] for group, _ in rates(kernel_row(copy))} == {"hot_bytes_per_s", "rotated_bytes_per_s"}
