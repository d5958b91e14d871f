"""The search for a Gaussian process's lengths and variances: those that maximise the posterior of the training rows.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006), equations 5.8 and 5.9, with weak
priors. Nearly all time of learning is spent here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.learners.covariance import distances, noise_variance, parts_of

SEARCH_STEPS = 60
# Rows of a covariance that are computed at once; their intermediate results should stay in cache.
_BAND = 96


def inverted(total: Floats) -> tuple[Floats, float]:
    """Invert a covariance by its Cholesky factor, in a third of the usual time; also half the log of its determinant.

    Raises `LinAlgError` where it is not positive definite.
    """
    lower, half_log_determinant = _lower_inverse(np.array(total, order="F"))
    inverse: Floats = np.tril(lower, -1)
    inverse += inverse.T
    inverse[np.diag_indices_from(inverse)] = np.diag(lower)
    return inverse, half_log_determinant


def searched_hyper(
    rows: Floats,
    target: Floats,
    noise: Floats,
    start: Floats,
    *,
    expected: Floats | None = None,
    steps: int = SEARCH_STEPS,
) -> Floats:
    """Find the lengths and variances of the greatest posterior, from `start`, which is also `expected` without that."""
    from scipy.optimize import minimize

    centre = start if expected is None else expected
    # weak priors on the logarithms matter only where rows do not decide
    deviations = np.ones_like(start)
    parts_of(deviations, rows.shape[1])[:, 1:] = 1.2

    def cost(hyper: Floats) -> tuple[float, Floats]:
        value, slope = negative_log_likelihood(hyper, rows, target, noise)
        offset = (hyper - centre) / deviations
        return value + 0.5 * float(offset @ offset), slope + offset / deviations

    bounds = [(value - 5.0, value + 5.0) for value in start]
    result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
    found: Floats = np.asarray(result.x, dtype=np.float64)
    return found


def negative_log_likelihood(hyper: Floats, rows: Floats, target: Floats, noise: Floats) -> tuple[float, Floats]:
    """Compute the cost of `hyper` without priors, and its gradient."""
    columns = rows.shape[1]
    # only the lower triangle is told, in bands that stay in cache: it is symmetric
    total = np.empty((len(rows), len(rows)), order="F")
    bands = []
    for start in range(0, len(rows), _BAND):
        band = _Band.of(rows, start, hyper)
        total[start : band.stop, : band.stop] = band.covariance
        bands.append(band)
    total[np.diag_indices_from(total)] += noise_variance(hyper) * noise
    try:
        inverse, half_log_determinant = _lower_inverse(total)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros_like(hyper)
    weights = _symmetric_product(inverse, target)
    value = 0.5 * float(target @ weights) + half_log_determinant

    # d value / d θ = −½ Σ (w wᵀ − K⁻¹) ∘ dK/dθ
    scaled = [rows / np.exp(part[1:]) for part in parts_of(hyper, columns)]
    slopes = np.zeros_like(hyper)
    own = -0.5 * (weights**2 - np.diag(inverse))
    slopes[0] = 2 * np.exp(2 * hyper[0]) * float((own * noise).sum())
    for band in bands:
        band.add_slopes(slopes, inverse, weights, scaled)
    slopes[1] *= 2 * np.exp(2 * hyper[1])
    return value, slopes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Band:
    """Rows `start` to `stop` of a covariance, up to the diagonal.

    `curved` is each Matérn part, and `stretch` its derivative by the logarithm of a length over the squared distance in
    that column.
    """

    start: int
    stop: int
    covariance: Floats
    products: Floats
    curved: list[Floats]
    stretch: list[Floats]

    @classmethod
    def of(cls, rows: Floats, start: int, hyper: Floats) -> "_Band":
        """Compute the covariances of rows from `start` on with themselves and all before."""
        stop = min(start + _BAND, len(rows))
        constant, linear = np.exp(2 * hyper[1:3])
        products = linear / max(rows.shape[1], 1) * (rows[start:stop] @ rows[:stop].T)
        total = products + constant
        curved, stretch = [], []
        for part in parts_of(hyper, rows.shape[1]):
            distance = distances(rows[start:stop], rows[:stop], part)
            distance *= 5
            np.sqrt(distance, out=distance)
            decay = np.exp(2 * part[0] - distance)
            curved.append((1 + distance + distance**2 / 3) * decay)
            stretch.append((5 / 3) * (1 + distance) * decay)
            total += curved[-1]
        return cls(start=start, stop=stop, covariance=total, products=products, curved=curved, stretch=stretch)

    def add_slopes(self, slopes: Floats, inverse: Floats, weights: Floats, scaled: Sequence[Floats]) -> None:
        """Add this band's part of the slopes, but for the noise's; that of the constant lacks its factor."""
        start, stop = self.start, self.stop
        # what lies below the diagonal counts twice, for what lies above
        pull = inverse[start:stop, :stop] - np.outer(weights[start:stop], weights[:stop])
        pull[:, start:] = np.tril(pull[:, start:])
        pull[np.arange(stop - start), np.arange(start, stop)] *= 0.5
        slopes[1] += float(pull.sum())
        slopes[2] += 2 * float(np.vdot(pull, self.products))
        columns = scaled[0].shape[1]
        own = parts_of(slopes, columns)
        for slope, curved, stretch, points in zip(own, self.curved, self.stretch, scaled, strict=True):
            slope[0] += 2 * float(np.vdot(pull, curved))
            pulled = pull * stretch
            squares = (points[start:stop] ** 2).T @ pulled.sum(axis=1) + (points[:stop] ** 2).T @ pulled.sum(axis=0)
            slope[1:] += squares - 2 * (points[start:stop] * (pulled @ points[:stop])).sum(axis=0)


def _lower_inverse(total: Floats) -> tuple[Floats, float]:
    """Invert the lower triangle of `total`, which is lost; also half the log of its determinant."""
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(total, lower=True, clean=False, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    half_log_determinant = float(np.log(np.diag(factor)).sum())
    return dpotri(factor, lower=True, overwrite_c=True)[0], half_log_determinant


def _symmetric_product(lower: Floats, vector: Floats) -> Floats:
    from scipy.linalg.blas import dsymv

    product: Floats = dsymv(1.0, lower, vector, lower=True)
    return product
