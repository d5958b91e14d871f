"""The covariance of a Gaussian process, and the search for its lengths and variances.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006), chapters 4 and 5. The covariance is
linear plus Matérn 5/2 with a length per column; lengths and variances maximise the posterior of the training rows
(equation 5.8 with weak priors).
"""

import numpy as np

from opmark.predictors.inputs.arrays import Floats

_SEARCH_STEPS = 60
_LEAST_NOISE = 0.004
# Degrees of freedom of the errors' distribution: the fewer, the less an outlier counts.
_FREEDOM = 4.0
_MOST_NOISE = 400.0

# `hyper` is the log of [noise deviation, constant, linear deviation, Matérn deviation, one length per column].
FIRST_LENGTH = 4


def initial_hyper(columns: int, target: Floats) -> Floats:
    """Start a search: little noise, and lengths so great that all columns together decide."""
    spread = max(float(target.std()), 0.02)
    first = [max(0.1 * spread, 2 * _LEAST_NOISE), spread, 0.3 * spread, spread]
    start: Floats = np.log(np.array(first + [2.0 * np.sqrt(max(columns, 1))] * columns))
    return start


def covariance(left: Floats, right: Floats, hyper: Floats) -> Floats:
    """Compute the covariance of each row of `left` with each of `right`, without noise."""
    constant, linear = np.exp(2 * hyper[1:3])
    total: Floats = matern(left, right, hyper)
    total += linear / max(left.shape[1], 1) * (left @ right.T) + constant
    return total


def matern(left: Floats, right: Floats, hyper: Floats) -> Floats:
    """Compute s² (1 + d + d²/3) exp(−d), in place because most of the time of a prediction is spent here."""
    distance = _distances(left, right, hyper)
    distance *= 5
    np.sqrt(distance, out=distance)
    decay = np.exp(-distance)
    smooth = distance / 3
    smooth += 1
    smooth *= distance
    smooth += 1
    smooth *= decay
    smooth *= float(np.exp(2 * hyper[3]))
    return smooth


def variances(points: Floats, hyper: Floats) -> Floats:
    """Compute each point's covariance with itself, without noise."""
    constant, linear, smooth = np.exp(2 * hyper[1:4])
    found: Floats = constant + smooth + linear / max(points.shape[1], 1) * (points**2).sum(axis=1)
    return found


def noise_variance(hyper: Floats) -> float:
    """The variance of the noise of a row of weight 1."""
    return float(np.exp(2 * hyper[0])) + _LEAST_NOISE**2


def student_noise(residual: Floats, variance: Floats, noise: Floats, hyper: Floats) -> Floats:
    """Compute each row's noise relative to the others if errors follow Student's t; outliers get more.

    `residual` is what a row is off when predicted from all others, `variance` what is expected of its square.
    """
    own_noise = noise_variance(hyper) * noise
    # the part of the variance that comes from distance to other rows
    certain = np.maximum(variance - own_noise, 0.0) + noise_variance(hyper)
    grown: Floats = (_FREEDOM + residual**2 / certain) / (_FREEDOM + 1)
    return np.clip(grown, 1.0, _MOST_NOISE)


def inverted(total: Floats) -> tuple[Floats, float]:
    """Invert a covariance by its Cholesky factor, in a third of the usual time; also half the log of its determinant.

    Raises `LinAlgError` where it is not positive definite.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(total, lower=True, clean=True)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    half_log_determinant = float(np.log(np.diag(factor)).sum())
    lower, _ = dpotri(factor, lower=True)
    inverse: Floats = lower + np.tril(lower, -1).T
    return inverse, half_log_determinant


def searched_hyper(rows: Floats, target: Floats, noise: Floats, start: Floats) -> Floats:
    """Find the lengths and variances of the greatest posterior, from `start`."""
    from scipy.optimize import minimize

    # weak priors on the logarithms matter only where rows do not decide
    deviations = np.concatenate([[1.0, 1.0, 1.0, 1.0], np.full(rows.shape[1], 1.2)])

    def cost(hyper: Floats) -> tuple[float, Floats]:
        value, slope = negative_log_likelihood(hyper, rows, target, noise)
        offset = (hyper - start) / deviations
        return value + 0.5 * float(offset @ offset), slope + offset / deviations

    bounds = [(value - 5.0, value + 5.0) for value in start]
    result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _SEARCH_STEPS})
    found: Floats = np.asarray(result.x, dtype=np.float64)
    return found


def negative_log_likelihood(hyper: Floats, rows: Floats, target: Floats, noise: Floats) -> tuple[float, Floats]:
    """Compute the cost of `hyper` without priors, and its gradient."""
    columns = rows.shape[1]
    constant, linear, smooth = np.exp(2 * hyper[1:4])
    distance = np.sqrt(5 * _distances(rows, rows, hyper))
    decay = np.exp(-distance)
    curved = smooth * (1 + distance + distance**2 / 3) * decay
    products = linear / max(columns, 1) * (rows @ rows.T)
    total = constant + products + curved
    total[np.diag_indices_from(total)] += noise_variance(hyper) * noise
    try:
        inverse, half_log_determinant = inverted(total)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros_like(hyper)
    weights = inverse @ target
    value = 0.5 * float(target @ weights) + half_log_determinant

    # d value / d θ = −½ Σ (w wᵀ − K⁻¹) ∘ dK/dθ
    pull = -0.5 * (np.outer(weights, weights) - inverse)
    slope = np.empty_like(hyper)
    slope[0] = 2 * np.exp(2 * hyper[0]) * float((np.diag(pull) * noise).sum())
    slope[1] = 2 * constant * float(pull.sum())
    slope[2] = 2 * float((pull * products).sum())
    slope[3] = 2 * float((pull * curved).sum())
    stretch = pull * (5 / 3) * smooth * (1 + distance) * decay
    scaled = rows / np.exp(hyper[4:])
    slope[4:] = 2 * (scaled**2 * stretch.sum(axis=1)[:, None]).sum(axis=0) - 2 * (scaled * (stretch @ scaled)).sum(
        axis=0
    )
    return value, slope


def _distances(left: Floats, right: Floats, hyper: Floats) -> Floats:
    lengths = np.exp(hyper[4:])
    one, two = left / lengths, right / lengths
    squared: Floats = one @ (-2 * two.T)
    squared += (one**2).sum(axis=1)[:, None]
    squared += (two**2).sum(axis=1)[None, :]
    np.maximum(squared, 0.0, out=squared)
    return squared
