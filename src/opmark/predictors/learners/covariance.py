"""The covariance of a Gaussian process, and the search for its lengths and variances.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006), chapters 4 and 5. The covariance is
linear plus one Matérn 5/2 or two, each with a length per column; lengths and variances maximise the posterior of the
training rows (equation 5.8 with weak priors). Two tell apart what changes slowly with a size and what changes fast.
"""

import numpy as np

from opmark.predictors.inputs.arrays import Floats

_SEARCH_STEPS = 60
_LEAST_NOISE = 0.004
# Degrees of freedom of the errors' distribution: the fewer, the less an outlier counts.
_FREEDOM = 4.0
_MOST_NOISE = 400.0

# `hyper` is the log of [noise deviation, constant, linear deviation], and for each Matérn covariance [deviation, one
# length per column].
_BEFORE_PARTS = 3
# A second Matérn covariance begins with half the deviation of the first, and a third of its lengths.
_SMALLER = float(np.log(2.0))
_SHORTER = 1.0


def initial_hyper(columns: int, target: Floats) -> Floats:
    """Start a search: little noise, and lengths so great that all columns together decide."""
    spread = max(float(target.std()), 0.02)
    first = [max(0.1 * spread, 2 * _LEAST_NOISE), spread, 0.3 * spread, spread]
    start: Floats = np.log(np.array(first + [2.0 * np.sqrt(max(columns, 1))] * columns))
    return start


def with_second(hyper: Floats, columns: int, *, shorter: float = _SHORTER) -> Floats:
    """Append a second Matérn covariance, smaller than the first and with lengths `shorter` by that logarithm."""
    first = _parts(hyper, columns)[0]
    return np.concatenate([hyper, first[:1] - _SMALLER, first[1:] - shorter])


def is_complete(hyper: Floats, columns: int) -> bool:
    """True if `hyper` has all lengths of one Matérn covariance or more."""
    return len(hyper) > _BEFORE_PARTS and (len(hyper) - _BEFORE_PARTS) % (columns + 1) == 0


def _parts(hyper: Floats, columns: int) -> Floats:
    """The logarithms of each Matérn covariance, one row for each: its deviation and its lengths."""
    return hyper[_BEFORE_PARTS:].reshape(-1, columns + 1)


def covariance(left: Floats, right: Floats, hyper: Floats) -> Floats:
    """Compute the covariance of each row of `left` with each of `right`, without noise."""
    constant, linear = np.exp(2 * hyper[1:3])
    total: Floats = matern(left, right, hyper)
    total += linear / max(left.shape[1], 1) * (left @ right.T) + constant
    return total


def matern(left: Floats, right: Floats, hyper: Floats) -> Floats:
    """Compute the sum of the Matérn covariances of each row of `left` with each of `right`."""
    first, *others = _parts(hyper, left.shape[1])
    total = _matern(left, right, first)
    for part in others:
        total += _matern(left, right, part)
    return total


def matern_variance(hyper: Floats, columns: int) -> float:
    """The sum of the Matérn covariances of a point with itself."""
    return float(np.exp(2 * _parts(hyper, columns)[:, 0]).sum())


def _matern(left: Floats, right: Floats, part: Floats) -> Floats:
    """Compute s² (1 + d + d²/3) exp(−d), in place because most of the time of a prediction is spent here."""
    distance = _distances(left, right, part)
    distance *= 5
    np.sqrt(distance, out=distance)
    decay = np.exp(-distance)
    smooth = distance / 3
    smooth += 1
    smooth *= distance
    smooth += 1
    smooth *= decay
    smooth *= float(np.exp(2 * part[0]))
    return smooth


def variances(points: Floats, hyper: Floats) -> Floats:
    """Compute each point's covariance with itself, without noise."""
    constant, linear = np.exp(2 * hyper[1:3])
    columns = points.shape[1]
    smooth = matern_variance(hyper, columns)
    found: Floats = constant + smooth + linear / max(columns, 1) * (points**2).sum(axis=1)
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


def searched_hyper(
    rows: Floats, target: Floats, noise: Floats, start: Floats, *, expected: Floats | None = None
) -> Floats:
    """Find the lengths and variances of the greatest posterior, from `start`, which is also `expected` without that."""
    from scipy.optimize import minimize

    centre = start if expected is None else expected
    # weak priors on the logarithms matter only where rows do not decide
    deviations = np.ones_like(start)
    _parts(deviations, rows.shape[1])[:, 1:] = 1.2

    def cost(hyper: Floats) -> tuple[float, Floats]:
        value, slope = negative_log_likelihood(hyper, rows, target, noise)
        offset = (hyper - centre) / deviations
        return value + 0.5 * float(offset @ offset), slope + offset / deviations

    bounds = [(value - 5.0, value + 5.0) for value in start]
    result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _SEARCH_STEPS})
    found: Floats = np.asarray(result.x, dtype=np.float64)
    return found


def negative_log_likelihood(hyper: Floats, rows: Floats, target: Floats, noise: Floats) -> tuple[float, Floats]:
    """Compute the cost of `hyper` without priors, and its gradient."""
    columns = rows.shape[1]
    constant, linear = np.exp(2 * hyper[1:3])
    products = linear / max(columns, 1) * (rows @ rows.T)
    total = constant + products
    parts = []
    for part in _parts(hyper, columns):
        distance = np.sqrt(5 * _distances(rows, rows, part))
        decay = float(np.exp(2 * part[0])) * np.exp(-distance)
        curved = (1 + distance + distance**2 / 3) * decay
        total += curved
        parts.append((rows / np.exp(part[1:]), curved, (5 / 3) * (1 + distance) * decay))
    total[np.diag_indices_from(total)] += noise_variance(hyper) * noise
    try:
        inverse, half_log_determinant = inverted(total)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros_like(hyper)
    weights = inverse @ target
    value = 0.5 * float(target @ weights) + half_log_determinant

    # d value / d θ = −½ Σ (w wᵀ − K⁻¹) ∘ dK/dθ
    pull = -0.5 * (np.outer(weights, weights) - inverse)
    own_noise = 2 * np.exp(2 * hyper[0]) * float((np.diag(pull) * noise).sum())
    slopes = [own_noise, 2 * constant * float(pull.sum()), 2 * float(np.vdot(pull, products))]
    for scaled, curved, stretch in parts:
        pulled = pull * stretch
        slopes.append(2 * float(np.vdot(pull, curved)))
        crossed = (scaled * (pulled @ scaled)).sum(axis=0)
        slopes.extend(2 * ((scaled**2).T @ pulled.sum(axis=1) - crossed))
    return value, np.array(slopes)


def _distances(left: Floats, right: Floats, part: Floats) -> Floats:
    lengths = np.exp(part[1:])
    one, two = left / lengths, right / lengths
    squared: Floats = one @ (-2 * two.T)
    squared += (one**2).sum(axis=1)[:, None]
    squared += (two**2).sum(axis=1)[None, :]
    np.maximum(squared, 0.0, out=squared)
    return squared
