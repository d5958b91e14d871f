"""The roofline finds a law it can express, and never goes negative."""

import numpy as np
import pytest

from opmark.predictors.learners.roofline import Roofline, fit_roofline, roofline_from

FLOPS = np.array([1e6, 1e7, 5e8, 2e9, 3e6, 9e7])
MOVED = np.array([4e5, 2e4, 8e6, 1e7, 6e7, 2e5])


def test_it_recovers_its_own_law() -> None:
    law = Roofline(ns_per_flop=0.02, ns_per_byte=0.1, constant_ns=700)
    found = fit_roofline(FLOPS, MOVED, law.latency_ns(FLOPS, MOVED))
    assert found.ns_per_flop == pytest.approx(0.02)
    assert found.ns_per_byte == pytest.approx(0.1)
    assert found.constant_ns == pytest.approx(700)


def test_coefficients_never_go_negative() -> None:
    found = fit_roofline(FLOPS, MOVED, 1e9 / FLOPS + 1)
    assert min(found.ns_per_flop, found.ns_per_byte, found.constant_ns) >= 0
    assert (found.latency_ns(np.zeros(1), np.zeros(1)) > 0).all()


def test_terms_can_be_left_out() -> None:
    found = fit_roofline(FLOPS, MOVED, FLOPS * 0.01 + 5, ("flops",))
    assert found.ns_per_byte == found.constant_ns == 0


def test_foreign_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="colour"):
        roofline_from({"colour": 1})
