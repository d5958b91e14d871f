"""The network sum's constants: recovered, monotone, and never fitted on what is reported as unseen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.predictors.constants import MOST_ROTATED, NetworkConstants, NetworkSum, fit_constants


def networks(truth: NetworkConstants, count: int = 12) -> list[NetworkSum]:
    source = np.random.default_rng(0)
    found = []
    for number in range(count):
        hot = float(10 ** source.uniform(6, 8))
        one = NetworkSum(
            network=f"n{number}",
            family=f"f{number}",
            role="training",
            hot_ns=hot,
            rotated_ns=hot * float(source.uniform(1.1, 1.7)),
            nodes=int(source.integers(20, 400)),
            footprint=float(10 ** source.uniform(-1.5, 1.5)),
            footprint_bytes=float(10 ** source.uniform(6, 8)),
            latency_ns=1.0,
        )
        found.append(replace(one, latency_ns=one.total_ns(truth)))
    return found


def test_they_are_recovered_from_networks_that_follow_them() -> None:
    truth = NetworkConstants(ceiling=0.9, midpoint=2.0, steepness=3.0, gap_ns=900)
    found = fit_constants(networks(truth, 30))
    for one in networks(truth, 30):
        assert one.total_ns(found) == pytest.approx(one.latency_ns, rel=0.03)
    assert found.gap_ns == pytest.approx(900, rel=0.3)
    assert found.ceiling == pytest.approx(0.9, rel=0.2)
    assert found.composition_deviation < 0.04
    assert found.networks[0] == "n0"


def test_faults_are_fitted_where_they_were_counted() -> None:
    truth = NetworkConstants(ns_per_fault=700, faults_per_byte=1e-3)
    sums = [replace(one, faults=one.footprint_bytes * 1e-3) for one in networks(truth, 20)]
    found = fit_constants(sums)
    assert found.faults_per_byte == pytest.approx(1e-3)
    assert found.ns_per_fault == pytest.approx(700, rel=0.3)
    assert fit_constants(networks(truth)).ns_per_fault == 0


def test_without_networks_the_defaults_hold_and_say_so() -> None:
    found = fit_constants([])
    assert found == NetworkConstants()
    assert "defaults" in found.note
    assert found.rotated_share(0.3) < 0.15
    assert 0.5 < found.rotated_share(3.4) < found.ceiling


@pytest.mark.parametrize("ceiling", [0.3, 1.3])
def test_how_far_a_network_rotates_is_the_machines(ceiling: float) -> None:
    truth = NetworkConstants(ceiling=ceiling)
    assert fit_constants(networks(truth, 30)).ceiling == pytest.approx(ceiling, abs=0.1)


def test_uncertain_sums_move_the_constants_less() -> None:
    far = [replace(one, latency_ns=1.3 * one.latency_ns) for one in networks(NetworkConstants(), 4)]
    sure = fit_constants(far)
    unsure = fit_constants([replace(one, deviation=0.5) for one in far])
    usual = NetworkConstants()
    assert abs(np.log(unsure.midpoint / usual.midpoint)) < abs(np.log(sure.midpoint / usual.midpoint))
    assert unsure.composition_deviation < sure.composition_deviation


def test_a_held_out_network_is_refused() -> None:
    (one,) = networks(NetworkConstants(), 1)
    with pytest.raises(ContentError, match=r"n0.*training networks only"):
        fit_constants([replace(one, role="held-out")])
    with pytest.raises(ContentError, match="both training and held-out"):
        fit_constants([one], held_out_families=["f0"])


@given(st.floats(0.05, 50), st.floats(0.3, 8), st.floats(0, 1e6, allow_subnormal=False), st.floats(1, 100))
def test_the_share_grows_with_the_footprint(midpoint: float, steepness: float, footprint: float, more: float) -> None:
    constants = NetworkConstants(midpoint=midpoint, steepness=steepness)
    share = constants.rotated_share(footprint)
    assert 0 <= share <= constants.rotated_share(footprint * more) <= constants.ceiling <= MOST_ROTATED


def test_an_interpreter_between_kernels_may_take_long() -> None:
    truth = NetworkConstants(gap_ns=12_000)
    slow = fit_constants(networks(truth, 5), backend="torch-eager").gap_ns
    assert slow == pytest.approx(12_000, rel=0.1)
    assert fit_constants(networks(truth, 5), backend="onnxruntime").gap_ns < slow
