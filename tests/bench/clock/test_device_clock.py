"""Samples are discarded for the device's clock, up to a fifth of them."""

from opmark.bench.clock.device_clock import MOST_DISCARDED, at_usual_clock, unsteady_share


def test_a_fifth_may_go():
    assert at_usual_clock([1500.0] * 8 + [1200.0] * 2) == (True,) * 8 + (False,) * 2


def test_more_than_a_fifth_stays_and_shows():
    clocks = [1500.0] * 7 + [1200.0] * 3
    assert at_usual_clock(clocks) == (True,) * 10
    assert unsteady_share(clocks) > MOST_DISCARDED


def test_one_step_of_the_clock_is_the_same_clock():
    assert unsteady_share([1500.0, 1515.0, 1500.0]) == 0.0


def test_no_clock_no_verdict():
    assert at_usual_clock([]) == ()
    assert unsteady_share([]) == 0.0
