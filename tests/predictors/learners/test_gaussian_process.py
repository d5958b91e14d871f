"""The smooth learner: interpolation, outliers, and held-out predictions without refitting."""

import numpy as np
import pytest

from opmark.predictors.inputs.arrays import from_text, to_text
from opmark.predictors.learners.covariance import (
    covariance,
    noise_variance,
    variances,
)
from opmark.predictors.learners.gaussian_process import GaussianProcess, LengthSearch, fit_process, process_from

SOURCE = np.random.default_rng(7)
ROWS = SOURCE.uniform(-2, 2, (70, 3))


def surface(rows: np.ndarray) -> np.ndarray:
    return np.sin(rows[:, 0]) + 0.3 * rows[:, 1]


def no_folds(count: int) -> np.ndarray:
    return np.arange(count) % 5


def test_it_learns_a_smooth_surface_from_few_rows() -> None:
    process, _ = fit_process(ROWS, surface(ROWS), no_folds(70))
    fresh = SOURCE.uniform(-1.8, 1.8, (200, 3))
    assert np.abs(process.predict(fresh) - surface(fresh)).mean() < 0.02


def test_outliers_count_little() -> None:
    target = surface(ROWS)
    spoiled = target.copy()
    spoiled[[3, 30, 55]] += 3.0
    process, _ = fit_process(ROWS, spoiled, no_folds(70))
    others = np.setdiff1d(np.arange(70), [3, 30, 55])
    assert np.abs(process.predict(ROWS[others]) - target[others]).mean() < 0.1


def test_held_out_predictions_are_those_of_a_fit_without_the_fold() -> None:
    target = surface(ROWS) + 0.05 * SOURCE.standard_normal(70)
    folds = no_folds(70)
    process, held_out = fit_process(ROWS, target, folds)
    inside = folds == 2
    # the same lengths, noise and mean on the other rows, solved from scratch
    noise = _noise(process, target)
    other = process.rows[~inside]
    total = covariance(other, other, process.hyper) + np.diag(noise_variance(process.hyper) * noise[~inside])
    weights = np.linalg.solve(total, target[~inside] - process.mean)
    expected = process.mean + covariance(process.rows[inside], other, process.hyper) @ weights
    assert held_out[inside] == pytest.approx(expected, abs=1e-6)


def _noise(process: GaussianProcess, target: np.ndarray) -> np.ndarray:
    """The rows' noise, from K w = y − mean."""
    smooth = covariance(process.rows, process.rows, process.hyper)
    rest = (target - process.mean - smooth @ process.weights) / process.weights
    return rest / noise_variance(process.hyper)


def test_it_survives_text_and_is_the_same_twice() -> None:
    process, held_out = fit_process(ROWS, surface(ROWS), no_folds(70))
    again = process_from(from_text(to_text(process.values())))
    assert np.array_equal(again.predict(ROWS), process.predict(ROWS))
    _, second = fit_process(ROWS, surface(ROWS), no_folds(70))
    assert np.array_equal(held_out, second)


def test_further_covariances_follow_a_sum_and_survive_text() -> None:
    rows = np.random.default_rng(7).uniform(-2, 2, (80, 3))
    target = 2 * np.sin(rows[:, 0]) * np.cos(rows[:, 1]) + 0.5 * np.sin(6 * rows[:, 2])
    one, by_one = fit_process(rows, target, no_folds(80))
    both, by_both = fit_process(rows, target, no_folds(80), search=LengthSearch(start=one.hyper, further=True))
    assert len(both.hyper) == len(one.hyper) + 8
    assert np.abs(by_both - target).mean() < 0.2 * np.abs(by_one - target).mean()
    again = process_from(from_text(to_text(both.values())))
    assert np.array_equal(again.predict(rows), both.predict(rows))
    assert both.similarity(rows[:5]) == pytest.approx(np.ones(5), abs=1e-6)
    points = (rows - both.centre) / both.scale
    assert np.diag(covariance(points, points, both.hyper)) == pytest.approx(variances(points, both.hyper))


@pytest.mark.parametrize("missing", [1, 2])
def test_lengths_of_some_columns_are_no_process(missing: int) -> None:
    process, _ = fit_process(ROWS, surface(ROWS), no_folds(70), search=LengthSearch(further=True))
    told = process.values() | {"hyper": process.hyper[:-missing]}
    with pytest.raises(ValueError, match="hyper has"):
        process_from(told)


def test_constant_columns_and_a_single_fold_do_no_harm() -> None:
    rows = np.column_stack([ROWS[:15], np.ones(15)])
    process, held_out = fit_process(rows, np.full(15, 0.4), np.zeros(15, dtype=np.int64))
    assert np.isfinite(held_out).all()
    assert process.predict(rows) == pytest.approx(0.4, abs=1e-3)
    assert process.predict(rows[:0]).shape == (0,)


def test_predicting_in_parts_is_the_covariance_times_the_weights() -> None:
    process, _ = fit_process(ROWS, surface(ROWS), no_folds(len(ROWS)))
    asked = SOURCE.uniform(-3, 3, (1300, 3))
    points = (asked - process.centre) / process.scale
    whole = covariance(points, process.rows, process.hyper)
    assert process.predict(asked) == pytest.approx(process.mean + whole @ process.weights, abs=1e-9)
    assert process.predict(asked[:0]).shape == (0,)
