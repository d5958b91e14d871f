"""The network sum's constants: recovered, monotone, pooled by class, and never fitted on what is reported as unseen."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opmark.core.errors import ContentError
from opmark.predictors.composition.constant_fit import fit_constants
from opmark.predictors.composition.constants import MOST_ROTATED, ClassConstants, NetworkConstants, NetworkSum


def networks(
    truth: NetworkConstants,
    count: int = 12,
    network_class: str = "float32",
    python_calls: Sequence[float | None] = (),
) -> list[NetworkSum]:
    source = np.random.default_rng(0)
    found = []
    for number in range(count):
        hot = float(10 ** source.uniform(6, 8))
        one = NetworkSum(
            network=f"{network_class}-n{number}",
            family=f"f{number}",
            role="training",
            hot_ns=hot,
            weights_ns=hot * float(source.uniform(0.05, 0.5)),
            activations_ns=hot * float(source.uniform(0.05, 0.5)),
            calls=int(source.integers(200, 400)),
            matrix_calls=int(source.integers(10, 200)),
            python_calls=python_calls[number] if python_calls else 0.0,
            footprint=float(10 ** source.uniform(-1.5, 1.5)),
            footprint_bytes=float(10 ** source.uniform(6, 8)),
            latency_ns=1.0,
            network_class=network_class,
        )
        found.append(replace(one, latency_ns=one.total_ns(truth)))
    return found


def test_they_are_recovered_from_networks_that_follow_them() -> None:
    truth = NetworkConstants(ceiling=1.1, midpoint=1.5, steepness=3.0, activation_share=0.4, gap_ns=900)
    found = fit_constants(networks(truth, 30))
    for one in networks(truth, 30):
        assert one.total_ns(found) == pytest.approx(one.latency_ns, rel=0.03)
    assert found.gap_ns == pytest.approx(900, rel=0.3)
    assert found.ceiling == pytest.approx(1.1, rel=0.2)
    assert found.activation_share == pytest.approx(0.4, abs=0.08)
    assert found.composition_deviation < 0.04
    assert found.networks[0] == "float32-n0"
    assert found.classes == {}


def test_weights_go_with_the_footprint_and_activations_do_not() -> None:
    one = networks(NetworkConstants())[0]
    small, large = replace(one, footprint=0.01), replace(one, footprint=50.0)
    constants = NetworkConstants(activation_share=0.5)
    stays = one.hot_ns + 0.5 * one.activations_ns
    assert small.total_ns(constants) == pytest.approx(stays, rel=1e-3)
    assert large.total_ns(constants) == pytest.approx(stays + constants.ceiling * one.weights_ns, rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_traffic_counts_where_families_that_were_left_out_say_so(share: float) -> None:
    truth = NetworkConstants(ceiling=1.0, midpoint=0.6, steepness=4.0, traffic_share=share)
    source = np.random.default_rng(1)
    sums = []
    for one in networks(NetworkConstants(), 40):
        busy = replace(one, traffic=float(10 ** source.uniform(-1.5, 1.0)), footprint=float(source.uniform(0.2, 1.0)))
        sums.append(replace(busy, latency_ns=busy.total_ns(truth)))
    found = fit_constants(sums)
    assert found.traffic_share == share
    assert max(abs(np.log(one.total_ns(found) / one.latency_ns)) for one in sums) < 0.05


@pytest.mark.parametrize(("odd", "share"), [(1, 0.0), (20, 0.3)])
def test_a_single_family_does_not_decide_that_traffic_counts(odd: int, share: float) -> None:
    counting = NetworkConstants(ceiling=1.0, midpoint=0.6, steepness=4.0, traffic_share=0.3)
    usual = replace(counting, traffic_share=0.0)
    source = np.random.default_rng(2)
    sums = []
    for number, one in enumerate(networks(NetworkConstants(), 40)):
        traffic = 4.0 if number < odd else float(source.uniform(0.0, 0.1))
        busy = replace(one, traffic=traffic, footprint=float(source.uniform(0.2, 0.3)))
        latency_ns = busy.total_ns(counting if number < odd else usual)
        sums.append(replace(busy, latency_ns=latency_ns * float(np.exp(0.03 * source.normal()))))
    assert fit_constants(sums).traffic_share == share


def test_more_traffic_never_warms_weights() -> None:
    (one,) = networks(NetworkConstants(), 1)
    constants = NetworkConstants(traffic_share=0.3)
    still, busy = replace(one, traffic=0.0), replace(one, traffic=4.0)
    assert still.total_ns(constants) == still.total_ns(NetworkConstants())
    assert busy.total_ns(constants) > still.total_ns(constants)


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
    assert found.rotated_share(0.2) < 0.15
    assert 0.5 < found.rotated_share(3.4) < found.ceiling


@pytest.mark.parametrize("ceiling", [0.5, 1.3])
def test_how_far_a_network_rotates_is_the_machines(ceiling: float) -> None:
    truth = NetworkConstants(ceiling=ceiling)
    assert fit_constants(networks(truth, 30)).ceiling == pytest.approx(ceiling, abs=0.1)


def test_uncertain_sums_move_the_constants_less() -> None:
    far = [replace(one, latency_ns=1.3 * one.latency_ns) for one in networks(NetworkConstants(), 4)]
    sure = fit_constants(far)
    unsure = fit_constants([replace(one, deviation=0.5) for one in far])
    usual = NetworkConstants()
    assert abs(unsure.activation_share - usual.activation_share) < abs(sure.activation_share - usual.activation_share)
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
    slow = fit_constants(networks(truth, 16), backend="torch-eager").gap_ns
    assert slow == pytest.approx(12_000, rel=0.15)
    assert fit_constants(networks(truth, 8), backend="onnxruntime").gap_ns < slow


def test_matrix_work_has_a_gap_of_its_own() -> None:
    truth = NetworkConstants(gap_ns=500, matrix_gap_ns=14_000)
    sums = networks(truth, 30)
    found = fit_constants(sums, backend="torch-eager")
    assert found.matrix_gap_ns == pytest.approx(14_000, rel=0.15)
    assert found.gap_ns < 3000
    one = replace(sums[0], matrix_calls=sums[0].matrix_calls + 10)
    assert one.total_ns(truth) == pytest.approx(sums[0].total_ns(truth) + 140_000)


def test_matrix_work_of_a_network_within_the_level_2_cache_hardly_waits() -> None:
    truth = NetworkConstants(gap_ns=500, matrix_gap_ns=30_000, matrix_gap_midpoint=0.5)
    sums = networks(truth, 30)
    found = fit_constants(sums, backend="torch-eager", matrix_gap_midpoint=0.5)
    assert found.matrix_gap_midpoint == 0.5
    assert found.matrix_gap_ns == pytest.approx(30_000, rel=0.15)
    assert fit_constants(sums, backend="torch-eager").matrix_gap_ns < 25_000
    small, half = (replace(sums[0], footprint=footprint, weights_ns=0.0) for footprint in (0.0, 0.5))
    assert half.total_ns(truth) == pytest.approx(small.total_ns(truth) + sums[0].matrix_calls * 15_000)


@given(st.floats(0, 1e3), st.floats(0, 1e6, allow_subnormal=False), st.floats(1, 100))
def test_the_evicted_code_grows_with_the_footprint(midpoint: float, footprint: float, more: float) -> None:
    constants = NetworkConstants(matrix_gap_midpoint=midpoint)
    assert 0 <= constants.evicted_code_share(footprint) <= constants.evicted_code_share(footprint * more) <= 1


def test_python_functions_take_time_of_their_own() -> None:
    truth = NetworkConstants(matrix_gap_ns=14_000, python_call_ns=600, python_calls_per_node=10)
    counts = [float(count) for count in np.random.default_rng(1).integers(200, 20_000, 30)]
    found = fit_constants(networks(truth, 30, python_calls=counts), backend="torch-eager")
    assert found.python_call_ns == pytest.approx(600, rel=0.15)
    assert found.matrix_gap_ns == pytest.approx(14_000, rel=0.25)
    one = networks(truth, 1, python_calls=[1000.0])[0]
    assert replace(one, python_calls=3000.0).total_ns(truth) == pytest.approx(one.total_ns(truth) + 2000 * 600)
    uncounted = replace(one, python_calls=None)
    assert uncounted.total_ns(truth) == pytest.approx(replace(one, python_calls=10.0 * one.calls).total_ns(truth))


def test_a_runtime_without_an_interpreter_spends_nothing_on_it() -> None:
    found = fit_constants(networks(NetworkConstants(gap_ns=900), 20), backend="onnxruntime")
    assert found.python_call_ns == 0
    assert found.python_calls_per_node == 0


def test_a_class_has_its_own_constants_where_its_networks_say_so() -> None:
    plain, steps = NetworkConstants(gap_ns=1000), NetworkConstants(gap_ns=40_000, activation_share=0.9)
    sums = networks(plain, 20) + networks(steps, 6, "training")
    found = fit_constants(sums, backend="torch-eager")
    assert set(found.classes) == {"float32", "training"}
    assert found.classes["training"].networks == 6
    assert found.of("training").gap_ns > 2 * found.of("float32").gap_ns
    for one in sums:
        assert one.total_ns(found) == pytest.approx(one.latency_ns, rel=0.1)
    # what no network of is known has what all have
    assert found.of("bfloat16") == replace(found, classes={})


def test_two_networks_are_no_class() -> None:
    sums = networks(NetworkConstants(), 12) + networks(NetworkConstants(), 2, "training")
    assert set(fit_constants(sums).classes) == {"float32"}


def test_a_class_keeps_its_own_doubt() -> None:
    own = ClassConstants(
        ceiling=1.0,
        midpoint=0.5,
        steepness=3.0,
        activation_share=0.2,
        gap_ns=5.0,
        composition_deviation=0.3,
        networks=4,
    )
    constants = NetworkConstants(interval_scale=1.5, classes={"training": own})
    assert constants.of("training").composition_deviation == 0.3
    assert constants.of("training").interval_scale == 1.5
    assert constants.of("float32").composition_deviation == NetworkConstants().composition_deviation


@pytest.mark.parametrize("scale", [0.8, 1.15])
def test_kernels_of_another_state_than_their_networks_are_scaled(scale: float) -> None:
    truth = NetworkConstants(kernel_scale=scale, gap_ns=900)
    found = fit_constants(networks(truth, 30))
    assert found.kernel_scale == pytest.approx(scale, rel=0.03)
    for one in networks(truth, 30):
        assert one.total_ns(found) == pytest.approx(one.latency_ns, rel=0.03)


def test_two_networks_scale_kernels_less_than_thirty() -> None:
    truth = NetworkConstants(kernel_scale=0.8)
    few, many = (fit_constants(networks(truth, count)).kernel_scale for count in (2, 30))
    assert 0.78 < many < few < 0.98


def test_a_class_scales_kernels_nearly_as_all_networks_do() -> None:
    sums = networks(NetworkConstants(kernel_scale=1.1), 20) + networks(
        NetworkConstants(kernel_scale=0.9), 4, "training"
    )
    found = fit_constants(sums)
    assert 0.93 < found.of("training").kernel_scale < found.of("float32").kernel_scale < 1.12


def test_a_few_networks_begin_from_another_machine_with_the_same_runtime() -> None:
    truth = NetworkConstants(gap_ns=6_000.0, matrix_gap_ns=2_000.0, python_call_ns=1_100.0, activation_share=0.3)
    calls = [float(count) for count in np.random.default_rng(3).integers(100, 900, 12)]
    few = [replace(one, hot_ns=one.hot_ns / 10) for one in networks(truth, 3, python_calls=calls)]
    few = [replace(one, latency_ns=one.total_ns(truth)) for one in few]
    # it spends more time between kernels, and its kernels were measured in a slow hour
    elsewhere = replace(truth, gap_ns=7_000.0, kernel_scale=1.3, networks=("other",), classes={})
    alone = fit_constants(few, backend="torch-eager")
    begun = fit_constants(few, backend="torch-eager", prior=elsewhere)
    assert abs(begun.python_call_ns - 1_100) < abs(alone.python_call_ns - 1_100)
    assert begun.kernel_scale == pytest.approx(1.0, abs=0.05), "the state is of a machine's own hour"
    assert begun.networks == tuple(one.network for one in few)


def test_constants_beyond_all_bounds_still_begin_a_fit() -> None:
    odd = NetworkConstants(steepness=0.0, ceiling=9.0, midpoint=1e-9, gap_ns=1e12, networks=("other",))
    found = fit_constants(networks(NetworkConstants(), 12), prior=odd)
    assert 0 <= found.ceiling <= MOST_ROTATED


def test_a_share_of_traffic_is_taken_from_another_machine() -> None:
    sums = [replace(one, traffic=1.0) for one in networks(NetworkConstants(), 4)]
    assert fit_constants(sums, prior=NetworkConstants(traffic_share=0.3)).traffic_share == 0.3
    assert fit_constants(sums).traffic_share == 0.0
