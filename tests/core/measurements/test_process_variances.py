"""Variances between processes: known deviations, processes that count little, and labels of two halves."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opmark.core.measurements.looks import LEAST_DEVIATION, fast_weights, weighted_medians
from opmark.core.measurements.process_variances import (
    Processes,
    Weigh,
    from_median,
    process_variances,
    student,
    weigh_alike,
)


def processes(deviations: Any) -> Processes:
    """Calm processes of trials, one row of `deviations` per trial; all trials are one group."""
    trials, each = np.shape(deviations)
    return Processes(
        value=9.0 + np.asarray(deviations, dtype=float).reshape(-1),
        calmness=np.ones(trials * each),
        trial=np.repeat(np.arange(trials), each),
        group=np.zeros(trials, dtype=np.int64),
    )


def fastest(found: Processes) -> Weigh:
    """The weights of labels at the calm state: those slower than the fastest count less."""

    def weigh(chosen: Any, index: Any) -> Any:
        calm = found.calmness[chosen]
        return fast_weights(found.value[chosen], index, calm, np.zeros(index.max() + 1), share=0.4)

    return weigh


def unlucky(chance: np.random.Generator, trials: int, each: int) -> Any:
    """Deviations of 0.5 %; two processes in five are slower, by 4 % in the mean."""
    slower = (chance.random((trials, each)) < 0.4) * chance.exponential(0.04, (trials, each))
    return chance.normal(0, 0.005, (trials, each)) + slower


def test_without_two_processes_of_a_trial_the_deviation_is_what_is_known_before() -> None:
    assert process_variances(processes([[0.0], [0.1]]), weigh_alike, alone=0.03) == pytest.approx([0.0009, 0.0009])


def test_normal_deviations_are_found() -> None:
    deviations = np.random.default_rng(0).normal(0, 0.02, (400, 5))
    found = np.sqrt(process_variances(processes(deviations), weigh_alike, alone=0.03))
    assert float(np.median(found)) == pytest.approx(0.02, rel=0.15)


def test_a_process_that_counts_little_in_the_label_counts_little_in_its_variance() -> None:
    deviations = np.random.default_rng(1).normal(0, 0.005, (60, 5))
    deviations[0, 2] += 0.4
    found = processes(deviations)
    left_out, counted = (process_variances(found, weigh, alone=0.03) for weigh in (fastest(found), weigh_alike))
    assert left_out[0] < 4 * np.median(left_out)
    assert counted[0] > 100 * np.median(counted)


def test_one_process_can_be_unlucky_and_several_seldom_are() -> None:
    chance = np.random.default_rng(2)
    each = unlucky(chance, 300, 8)
    single = processes(each)
    # As many trials of one process, whose error the others tell.
    found = Processes(
        value=np.concatenate([single.value, 9.0 + unlucky(chance, 300, 1)[:, 0]]),
        calmness=np.ones(9 * 300),
        trial=np.concatenate([single.trial, 300 + np.arange(300)]),
        group=np.zeros(600, dtype=np.int64),
    )
    deviation = np.sqrt(process_variances(found, fastest(found), alone=0.03))
    assert np.median(deviation[300:]) > 2 * np.median(deviation[:300])


@pytest.mark.parametrize("each", [1, 2, 3, 6])
def test_nine_of_ten_labels_of_two_runs_agree_within_their_errors(each: int) -> None:
    chance = np.random.default_rng(3)
    labels = []
    for _ in range(2):
        # A third of the trials is measured twice as often, so that runs of one process know how these differ.
        deviations = unlucky(chance, 600, 2 * each)
        keep = (np.arange(2 * each) < each) | (np.arange(600) % 3 == 0)[:, None]
        found = processes(deviations)
        kept = np.flatnonzero(keep.reshape(-1))
        found = Processes(
            value=found.value[kept], calmness=found.calmness[kept], trial=found.trial[kept], group=found.group
        )
        weight = fastest(found)(np.arange(len(kept)), found.trial)
        told = np.bincount(found.trial, weight * found.value) / np.bincount(found.trial, weight)
        variance = process_variances(found, fastest(found), alone=0.03)
        error = np.sqrt(variance / np.bincount(found.trial, weight)) * student(np.bincount(found.trial))
        labels.append((told, np.hypot(error, from_median(found.value, found.trial, found.calmness, told))))
    (one, its_error), (other, other_error) = labels
    held = np.mean(np.abs(one - other) <= 1.645 * np.hypot(its_error, other_error))
    assert 0.84 <= held <= 0.98


def test_restless_processes_hardly_move_the_median_of_a_label() -> None:
    value = np.array([9.0, 9.01, 9.3, 9.4, 9.5])
    index, told = np.zeros(5, dtype=np.int64), np.array([9.0])
    calm = from_median(value, index, np.ones(5), told)
    restless = from_median(value, index, np.array([1.0, 1.0, 0.1, 0.1, 0.1]), told)
    assert calm[0] == pytest.approx(0.15)
    assert 0.0 < restless[0] < 0.01


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(
        st.lists(st.floats(min_value=-5, max_value=5), min_size=1, max_size=9, unique=True), min_size=1, max_size=5
    ),
    weight=st.floats(min_value=0.01, max_value=5),
)
def test_weighted_medians_are_medians_where_all_weights_are_equal(values: list[list[float]], weight: float) -> None:
    index = np.repeat(np.arange(len(values)), [len(row) for row in values])
    flat = np.concatenate(values)
    found = weighted_medians(flat, index, np.full(len(flat), weight))
    assert found == pytest.approx([np.median(row) for row in values], abs=1e-9)


def test_a_weighted_median_lies_between_the_middles_of_weight() -> None:
    value = np.array([1.0, 2.0, 4.0])
    # Their middles lie at 0.3, 0.7 and 0.9 of the weight.
    found = weighted_medians(value, np.zeros(3, dtype=np.int64), np.array([6.0, 2.0, 2.0]))
    assert found == pytest.approx([1.5])


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(min_value=0, max_value=99),
    factor=st.floats(min_value=1.0, max_value=20.0),
    apart=st.floats(min_value=-3.0, max_value=3.0),
)
def test_variances_scale_with_the_deviations_and_do_not_depend_on_the_latency(
    seed: int, factor: float, apart: float
) -> None:
    deviations = np.random.default_rng(seed).normal(0, 20 * LEAST_DEVIATION, (12, 4))
    found = process_variances(processes(deviations), weigh_alike, alone=0.03)
    latencies = np.arange(12)[:, None] * apart
    scaled = process_variances(processes(factor * deviations + latencies), weigh_alike, alone=0.03)
    assert scaled == pytest.approx(factor**2 * found, rel=1e-6)
