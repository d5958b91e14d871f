import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.measurements.host_clock import HostClock, host_clock, usual_ns

USUAL = {"compute": 30_000.0, "memory": 60_000.0}


def test_both_sentinels_slower_alike_are_a_slower_clock() -> None:
    found = host_clock({"compute": 31_500.0, "memory": 63_000.0}, USUAL)
    assert (found.ratio, found.off) == (pytest.approx(1.05), pytest.approx(0.0))


def test_a_sentinel_that_moves_alone_is_something_else() -> None:
    found = host_clock({"compute": 30_000.0, "memory": 69_000.0}, USUAL)
    assert (found.ratio, found.off) == (1.0, pytest.approx(0.15))
    found = host_clock({"compute": 33_000.0, "memory": 60_000.0}, USUAL)
    assert (found.ratio, found.off) == (pytest.approx(1.1), pytest.approx(1 - 1 / 1.1))


def test_too_far_is_no_clock() -> None:
    assert host_clock({"compute": 60_000.0, "memory": 120_000.0}, USUAL) == HostClock(off=1.0)


def test_one_sentinel_alone_tells_no_clock() -> None:
    assert host_clock({"compute": 31_500.0}, USUAL) == HostClock(off=pytest.approx(0.05))
    assert host_clock({}, USUAL) == host_clock(USUAL, {}) == HostClock()


@given(st.floats(0.9, 1.1))
def test_a_clock_changes_nothing_else(ratio: float) -> None:
    found = host_clock({name: ns * ratio for name, ns in USUAL.items()}, USUAL)
    assert found.ratio == pytest.approx(ratio)
    assert found.off < 1e-9


def test_the_usual_is_the_median_of_each() -> None:
    readings = [{"compute": 1.0, "memory": 5.0}, {"compute": 2.0}, {"compute": 9.0, "memory": 7.0}]
    assert usual_ns(readings) == {"compute": 2.0, "memory": 6.0}
