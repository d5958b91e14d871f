import pytest

from opmark.bench.run.drift import Drift, steady
from opmark.core.measurements.host_clock import HostClock
from opmark.core.measurements.records import Sentinels


def reading(compute: float, memory: float = 60.0) -> dict[str, float]:
    return {"compute": compute, "memory": memory}


def test_the_clock_is_told_beside_the_median_of_the_readings() -> None:
    earlier = (Sentinels(round=n, target="t", ns=reading(30.0 + n % 2), accepted=True) for n in range(5))
    drift = Drift(earlier, 0.03)
    assert drift.clock("t", reading(30.0)) == HostClock()
    assert drift.clock("t", reading(33.0, 66.0)).ratio == pytest.approx(1.1)
    assert drift.clock("t", reading(33.0, 66.0)).off == pytest.approx(0.0)
    assert drift.clock("t", reading(30.0, 45.0)).off == pytest.approx(0.25)


def test_few_readings_of_a_target_say_nothing() -> None:
    drift = Drift((), 0.03)
    for _ in range(4):
        drift.judge(0, "t", reading(30.0), reading(30.0), is_last=False)
        drift.judge(0, "t", {}, {}, is_last=False)
    assert drift.clock("t", reading(90.0)) == HostClock()
    drift.judge(0, "t", reading(30.0), reading(30.0), is_last=False)
    assert drift.clock("t", reading(90.0)).off == pytest.approx(2.0)
    assert drift.clock("u", reading(90.0)) == HostClock()
    assert drift.clock("t", {}) == HostClock()


def test_a_round_at_another_clock_is_accepted_and_says_so() -> None:
    drift = Drift([Sentinels(round=n, target="t", ns=reading(30.0), accepted=True) for n in range(5)], 0.03)
    found = drift.judge(7, "t", reading(31.5, 63.0), reading(31.5, 63.0), is_last=False)
    assert (found.accepted, found.drift, found.clock_ratio) == (True, 0.0, 1.05)
    assert drift.is_calm("t", reading(31.5, 63.0))


def test_a_round_in_which_the_clock_moved_or_a_sentinel_alone_is_not() -> None:
    drift = Drift([Sentinels(round=n, target="t", ns=reading(30.0), accepted=True) for n in range(5)], 0.03)
    moved = drift.judge(7, "t", reading(30.0), reading(31.5, 63.0), is_last=False)
    assert (moved.accepted, moved.drift) == (False, 0.05)
    alone = drift.judge(8, "t", reading(30.0, 70.0), reading(30.0, 70.0), is_last=False)
    assert not alone.accepted
    last = drift.judge(9, "t", reading(30.0, 70.0), reading(30.0, 70.0), is_last=True)
    assert (last.accepted, last.drift) == (True, pytest.approx(1 / 6, abs=1e-3))
    assert not drift.is_calm("t", reading(30.0, 70.0))


def test_a_round_whose_clock_stayed_has_one_reading() -> None:
    found, step = steady(reading(30.0, 70.0), reading(30.3, 60.0))
    assert found["compute"] == pytest.approx(30.15, rel=1e-3)
    assert found["memory"] == 60.0, "a neighbour's moment on the shared cache is no part of the round"
    assert step == pytest.approx(0.01)


def test_a_round_whose_clock_moved_says_by_how_much() -> None:
    assert steady(reading(30.0), reading(33.0))[1] == pytest.approx(0.1)
    assert steady(reading(33.0), reading(30.0))[1] == pytest.approx(0.1)
    assert steady({}, {}) == ({}, 0.0)
    assert steady(reading(30.0), {}) == (reading(30.0), 0.0)
