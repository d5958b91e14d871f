"""Rows that stand for all: the same process where all are kept, a better one than without the others, outliers."""

import numpy as np
import pytest

from opmark.predictors.learners.covariance import covariance, noise_variance
from opmark.predictors.learners.gaussian_process import fit_process
from opmark.predictors.learners.inducing_rows import InducingRows

SOURCE = np.random.default_rng(3)
ROWS = SOURCE.uniform(-2, 2, (160, 2))
HYPER = np.log(np.array([0.1, 0.8, 0.4, 0.9, 1.5, 0.7]))
NOISE = np.linspace(1, 3, len(ROWS))


def surface(rows: np.ndarray) -> np.ndarray:
    return np.sin(3 * rows[:, 0]) * np.cos(2 * rows[:, 1])


def without(own: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Predictions of `own` rows by an exact process of the others."""
    others = ~own
    total = covariance(ROWS[others], ROWS[others], HYPER) + np.diag(noise_variance(HYPER) * NOISE[others])
    answer: np.ndarray = covariance(ROWS[own], ROWS[others], HYPER) @ np.linalg.solve(total, target[others])
    return answer


def test_where_all_rows_are_kept_it_is_the_exact_process() -> None:
    target = surface(ROWS)
    learner = InducingRows.of(ROWS, target, np.arange(len(ROWS)), HYPER)
    folds = np.arange(len(ROWS)) % 4
    weights, held_out = learner.solved(NOISE, folds)
    total = covariance(ROWS, ROWS, HYPER)
    exact = np.linalg.solve(total + np.diag(noise_variance(HYPER) * NOISE), target)
    assert total @ weights == pytest.approx(total @ exact, abs=1e-3)
    for fold in range(4):
        assert held_out[folds == fold] == pytest.approx(without(folds == fold, target), abs=1e-3)
    residual, variance = learner.left_out(NOISE)
    alone = np.arange(len(ROWS)) == 7
    assert residual[7] == pytest.approx(target[7] - without(alone, target)[0], abs=1e-3)
    assert variance[7] > noise_variance(HYPER) * NOISE[7]


def test_rows_that_are_not_kept_are_learned_from() -> None:
    target = surface(ROWS) + 0.3 * SOURCE.standard_normal(len(ROWS))
    folds = np.arange(len(ROWS)) % 5
    fresh = SOURCE.uniform(-1.8, 1.8, (300, 2))
    process, held_out = fit_process(ROWS, target, folds, most_rows=60)
    assert len(process.rows) == len(process.weights) == 60
    error = np.abs(process.predict(fresh) - surface(fresh)).mean()
    few, _ = fit_process(process.rows * process.scale + process.centre, target[kept(process.rows)], folds[:60])
    assert error < 0.85 * np.abs(few.predict(fresh) - surface(fresh)).mean()
    assert np.abs(held_out - surface(ROWS)).mean() < 2 * error


def kept(rows: np.ndarray) -> np.ndarray:
    """The numbers of the rows that a process keeps."""
    points = (ROWS - ROWS.mean(axis=0)) / ROWS.std(axis=0)
    return np.array([int(np.flatnonzero((points == row).all(axis=1))[0]) for row in rows])


def test_an_outlier_that_is_not_kept_counts_little() -> None:
    target = surface(ROWS)
    folds = np.arange(len(ROWS)) % 5
    process, _ = fit_process(ROWS, target, folds, most_rows=60)
    left = np.setdiff1d(np.arange(len(ROWS)), kept(process.rows))[:3]
    target[left] += 3.0
    spoiled, _ = fit_process(ROWS, target, folds, most_rows=60)
    others = np.setdiff1d(np.arange(len(ROWS)), left)
    assert np.abs(spoiled.predict(ROWS[others]) - surface(ROWS[others])).mean() < 0.1


def test_nothing_is_known_of_a_row_whose_fold_is_all() -> None:
    learner = InducingRows.of(ROWS, surface(ROWS), np.arange(0, len(ROWS), 4), HYPER)
    _, held_out = learner.solved(NOISE, np.zeros(len(ROWS), dtype=np.int64))
    assert held_out == pytest.approx(0.0, abs=1e-9)
