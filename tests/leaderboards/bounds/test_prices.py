"""Prices of devices: their sum over slots is 1, and priced work never exceeds what it takes."""

import numpy as np
import pytest

from opmark.leaderboards.bounds.prices import least_work_ns, price_rows

# three units; the second device is twice as fast, and cannot run the last one
RUN = np.array([[20, 10], [40, 20], [30, -1]])
ALL = np.ones((1, 3), dtype=bool)


def test_the_best_prices_reach_the_time_of_freely_divided_work() -> None:
    slots = np.array([1, 1])
    prices = price_rows(RUN, slots, ALL)
    assert prices @ slots == pytest.approx(np.ones(len(prices)))
    # 30 ns on the second device, and beside it the last unit on the first
    assert least_work_ns(RUN, prices).sum(axis=1).max() == pytest.approx(30.0)
    assert least_work_ns(RUN[:2], price_rows(RUN[:2], slots, ALL[:, :2])).sum(axis=1).max() == pytest.approx(20.0)


def test_slots_share_the_work() -> None:
    prices = price_rows(RUN[:2], np.array([2, 1]), ALL[:, :2])
    assert least_work_ns(RUN[:2], prices).sum(axis=1).max() == pytest.approx(15.0)


def test_a_unit_that_nothing_can_run_has_no_work() -> None:
    nothing = np.array([[-1, -1]])
    assert least_work_ns(nothing, price_rows(nothing, np.array([1, 1]), ALL[:, :1])).tolist() == [[0.0], [0.0]]
