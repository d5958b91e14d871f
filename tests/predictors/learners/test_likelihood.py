"""The search for lengths: its slope, the same in bands as at once, and inverses."""

import numpy as np
import pytest

from opmark.predictors.learners import likelihood
from opmark.predictors.learners.covariance import covariance, initial_hyper, noise_variance
from opmark.predictors.learners.likelihood import inverted, negative_log_likelihood, searched_hyper

SOURCE = np.random.default_rng(7)
ROWS = SOURCE.uniform(-2, 2, (70, 3))
ONE_PART = [0.1, 0.8, 0.4, 0.9, 1.5, 0.7, 2.5]
TWO_PARTS = [*ONE_PART, 0.3, 0.4, 0.9, 0.2]


@pytest.mark.parametrize("deviations", [ONE_PART, TWO_PARTS])
def test_the_gradient_is_the_derivative(deviations: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows fill two bands and a part of a third."""
    monkeypatch.setattr(likelihood, "_BAND", 8)
    rows, target = ROWS[:20], np.sin(ROWS[:20, 0])
    noise = np.linspace(1, 3, 20)
    hyper = np.log(np.array(deviations))
    _, slope = negative_log_likelihood(hyper, rows, target, noise)
    for index in range(len(hyper)):
        step = np.zeros(len(hyper))
        step[index] = 1e-5
        above, _ = negative_log_likelihood(hyper + step, rows, target, noise)
        below, _ = negative_log_likelihood(hyper - step, rows, target, noise)
        assert slope[index] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("deviations", [ONE_PART, TWO_PARTS])
def test_bands_tell_what_the_whole_covariance_tells(deviations: list[float]) -> None:
    count = likelihood._BAND + 5
    rows, noise = SOURCE.uniform(-2, 2, (count, 3)), np.linspace(1, 3, count)
    target, hyper = np.sin(rows[:, 0]), np.log(np.array(deviations))
    total = covariance(rows, rows, hyper) + np.diag(noise_variance(hyper) * noise)
    expected = 0.5 * (target @ np.linalg.solve(total, target) + np.linalg.slogdet(total)[1])
    assert negative_log_likelihood(hyper, rows, target, noise)[0] == pytest.approx(expected)


def test_more_steps_find_a_greater_posterior() -> None:
    target, noise = np.sin(3 * ROWS[:, 0]), np.ones(len(ROWS))
    start = initial_hyper(3, target)
    costs = [
        negative_log_likelihood(searched_hyper(ROWS, target, noise, start, steps=steps), ROWS, target, noise)[0]
        for steps in (1, 10)
    ]
    assert costs[1] < costs[0] < negative_log_likelihood(start, ROWS, target, noise)[0]


def test_an_inverse_by_its_factor_is_the_inverse() -> None:
    root = SOURCE.normal(size=(30, 30))
    total = root @ root.T + np.eye(30)
    before = total.copy()
    inverse, half = inverted(total)
    assert np.array_equal(total, before)
    assert inverse == pytest.approx(np.linalg.inv(total), abs=1e-9)
    assert np.array_equal(inverse, inverse.T)
    assert 2 * half == pytest.approx(np.linalg.slogdet(total)[1])
    with pytest.raises(np.linalg.LinAlgError):
        inverted(-total)
