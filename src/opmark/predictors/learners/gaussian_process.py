"""Gaussian-process regression for tens to thousands of rows: a smooth surface with one length per feature.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006), chapters 4 and 5. The covariance is
linear plus Matérn 5/2 with a length per column; lengths and variances maximise the posterior of the training rows
(equation 5.8 with weak priors). Residuals of held-out groups follow from the full fit (section 5.4.2, in blocks).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers, check_shapes

# A step of the search for lengths costs rows³; this many rows determine them well enough.
_SEARCH_ROWS = 480
_SEARCH_STEPS = 60
# A prediction costs one covariance per training row.
_MOST_ROWS = 2000
# Degrees of freedom of the errors' distribution: the fewer, the less an outlier counts.
_FREEDOM = 4.0
_MOST_NOISE = 400.0
_ROBUST_ROUNDS = 2
# Rows predicted at once; they and their covariances should stay in cache.
_CHUNK = 512
_LEAST_NOISE = 0.004
# Logarithms, as all of `hyper`: beyond, their squares overflow.
_MOST_HYPER = 300.0
_FIRST_LENGTH = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianProcess:
    """A fitted process over columns standardised by `centre` and `scale`; `weights` are K⁻¹(y − mean)."""

    centre: Floats
    scale: Floats
    hyper: Floats
    rows: Floats
    weights: Floats
    mean: float

    def predict(self, matrix: Floats) -> Floats:
        """Compute the posterior mean at each row of `matrix`."""
        points = (matrix - self.centre) / self.scale
        # the constant and the linear part of the covariance reduce to a number and a vector
        constant, linear = np.exp(2 * self.hyper[1:3])
        slopes = linear / max(self.rows.shape[1], 1) * (self.rows.T @ self.weights)
        total: Floats = self.mean + constant * self.weights.sum() + points @ slopes
        for start in range(0, len(points), _CHUNK):
            total[start : start + _CHUNK] += (
                _matern(points[start : start + _CHUNK], self.rows, self.hyper) @ self.weights
            )
        return total

    def similarity(self, matrix: Floats) -> Floats:
        """Find the correlation, 0 to 1, of each row of `matrix` with the training row most like it."""
        points = (matrix - self.centre) / self.scale
        alike = _matern(points, self.rows, self.hyper).max(axis=1) / np.exp(2 * self.hyper[3])
        clipped: Floats = np.clip(alike, 0.0, 1.0)
        return clipped

    def values(self) -> dict[str, Any]:
        """All fields by name, for storage."""
        return {name: getattr(self, name) for name in self.__slots__}


def process_from(values: dict[str, Any]) -> GaussianProcess:
    """Read a process from its stored values. Raises `KeyError` or `ValueError` on foreign ones."""
    arrays = {name: np.array(values[name], dtype=np.float64) for name in GaussianProcess.__slots__ if name != "mean"}
    columns = len(arrays["centre"])
    arrays["rows"] = arrays["rows"].reshape(-1, columns)
    check_shapes(
        centre=(arrays["centre"], (columns,)),
        rows=(arrays["rows"], arrays["rows"].shape),
        scale=(arrays["scale"], (columns,)),
        hyper=(arrays["hyper"], (_FIRST_LENGTH + columns,)),
        weights=(arrays["weights"], (len(arrays["rows"]),)),
    )
    if not arrays["scale"].all() or np.abs(arrays["hyper"]).max() > _MOST_HYPER:
        raise ValueError("a process cannot have these scales or lengths")
    return GaussianProcess(**arrays, mean=float(values["mean"]))


def fit_process(
    matrix: Floats,
    target: Floats,
    folds: Integers,
    weight: Floats | None = None,
    *,
    most_rows: int = _MOST_ROWS,
    search_rows: int = _SEARCH_ROWS,
) -> tuple[GaussianProcess, Floats]:
    """Fit a process to `target`; return it, and predictions of each row made without the row's fold.

    A row's noise is the greater, the smaller its `weight`. Reweighting makes errors follow Student's t, so that
    outliers count little. Of more than `most_rows`, an even spread of so many is fitted; lengths follow `search_rows`.
    """
    used = _spread(len(target), most_rows)
    centre = matrix.mean(axis=0)
    deviation = matrix.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)
    points = (matrix - centre) / scale
    rows, values = points[used], target[used]
    mean = float(np.median(values))
    centred = values - mean

    search = _spread(len(used), search_rows)
    given = np.ones(len(used)) if weight is None else 1 / weight[used]
    noise = given
    hyper = _search(rows[search], centred[search], noise[search], _initial(rows.shape[1], centred))
    for _ in range(_ROBUST_ROUNDS):
        noise = given * _student_noise(rows, centred, noise, hyper)
    hyper = _search(rows[search], centred[search], noise[search], hyper)
    noise = given * _student_noise(rows, centred, noise, hyper)

    inverse = _inverse(rows, noise, hyper)
    weights = inverse @ centred
    held_out = np.empty(len(target))
    for fold in np.unique(folds):
        own = folds == fold
        inside = np.flatnonzero(own[used])
        without = weights
        if inside.size and inside.size < len(used):
            # K⁻¹ of the other rows follows from the Schur complement of this fold's block
            block = inverse[np.ix_(inside, inside)]
            without = weights - inverse[:, inside] @ np.linalg.solve(block, weights[inside])
            without[inside] = 0.0
        elif inside.size:
            without = np.zeros_like(weights)
        held_out[own] = mean + _covariance(points[own], rows, hyper) @ without
    process = GaussianProcess(centre=centre, scale=scale, hyper=hyper, rows=rows, weights=weights, mean=mean)
    return process, held_out


# `hyper` is the log of [noise deviation, constant, linear deviation, Matérn deviation, one length per column].


def _initial(columns: int, target: Floats) -> Floats:
    spread = max(float(target.std()), 0.02)
    first = [max(0.1 * spread, 2 * _LEAST_NOISE), spread, 0.3 * spread, spread]
    start: Floats = np.log(np.array(first + [2.0 * np.sqrt(max(columns, 1))] * columns))
    return start


def _distances(left: Floats, right: Floats, hyper: Floats) -> Floats:
    lengths = np.exp(hyper[4:])
    one, two = left / lengths, right / lengths
    squared: Floats = one @ (-2 * two.T)
    squared += (one**2).sum(axis=1)[:, None]
    squared += (two**2).sum(axis=1)[None, :]
    np.maximum(squared, 0.0, out=squared)
    return squared


def _covariance(left: Floats, right: Floats, hyper: Floats) -> Floats:
    constant, linear = np.exp(2 * hyper[1:3])
    covariance: Floats = _matern(left, right, hyper)
    covariance += linear / max(left.shape[1], 1) * (left @ right.T) + constant
    return covariance


def _matern(left: Floats, right: Floats, hyper: Floats) -> Floats:
    """Compute s² (1 + d + d²/3) exp(−d), in place because most of the time of a prediction is spent here."""
    distance = _distances(left, right, hyper)
    distance *= 5
    np.sqrt(distance, out=distance)
    decay = np.exp(-distance)
    matern = distance / 3
    matern += 1
    matern *= distance
    matern += 1
    matern *= decay
    matern *= float(np.exp(2 * hyper[3]))
    return matern


def _noise_variance(hyper: Floats) -> float:
    return float(np.exp(2 * hyper[0])) + _LEAST_NOISE**2


def _inverse(rows: Floats, noise: Floats, hyper: Floats) -> Floats:
    covariance = _covariance(rows, rows, hyper)
    covariance[np.diag_indices_from(covariance)] += _noise_variance(hyper) * noise
    try:
        return _inverted(covariance)[0]
    except np.linalg.LinAlgError:  # by the last digits; the usual way tells nothing of it
        inverse: Floats = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    return inverse


def _inverted(covariance: Floats) -> tuple[Floats, float]:
    """Invert a covariance by its Cholesky factor, in a third of the usual time; also half the log of its determinant.

    Raises `LinAlgError` where it is not positive definite.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(covariance, lower=True, clean=True)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    half_log_determinant = float(np.log(np.diag(factor)).sum())
    lower, _ = dpotri(factor, lower=True)
    inverse: Floats = lower + np.tril(lower, -1).T
    return inverse, half_log_determinant


def _student_noise(rows: Floats, target: Floats, noise: Floats, hyper: Floats) -> Floats:
    """Compute each row's noise relative to the others if errors follow Student's t; outliers get more."""
    inverse = _inverse(rows, noise, hyper)
    variance = 1 / np.diag(inverse)
    own_noise = _noise_variance(hyper) * noise
    # the held-out error of a row, and the part of its variance that comes from distance to other rows
    residual = (inverse @ target) * variance
    certain = np.maximum(variance - own_noise, 0.0) + _noise_variance(hyper)
    grown: Floats = (_FREEDOM + residual**2 / certain) / (_FREEDOM + 1)
    return np.clip(grown, 1.0, _MOST_NOISE)


def _search(rows: Floats, target: Floats, noise: Floats, start: Floats) -> Floats:
    from scipy.optimize import minimize

    # weak priors on the logarithms matter only where rows do not decide
    deviations = np.concatenate([[1.0, 1.0, 1.0, 1.0], np.full(rows.shape[1], 1.2)])

    def cost(hyper: Floats) -> tuple[float, Floats]:
        value, slope = _negative_log_likelihood(hyper, rows, target, noise)
        offset = (hyper - start) / deviations
        return value + 0.5 * float(offset @ offset), slope + offset / deviations

    bounds = [(value - 5.0, value + 5.0) for value in start]
    result = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _SEARCH_STEPS})
    found: Floats = np.asarray(result.x, dtype=np.float64)
    return found


def _negative_log_likelihood(hyper: Floats, rows: Floats, target: Floats, noise: Floats) -> tuple[float, Floats]:
    columns = rows.shape[1]
    constant, linear, smooth = np.exp(2 * hyper[1:4])
    distance = np.sqrt(5 * _distances(rows, rows, hyper))
    decay = np.exp(-distance)
    matern = smooth * (1 + distance + distance**2 / 3) * decay
    products = linear / max(columns, 1) * (rows @ rows.T)
    covariance = constant + products + matern
    covariance[np.diag_indices_from(covariance)] += _noise_variance(hyper) * noise
    try:
        inverse, half_log_determinant = _inverted(covariance)
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
    slope[3] = 2 * float((pull * matern).sum())
    stretch = pull * (5 / 3) * smooth * (1 + distance) * decay
    scaled = rows / np.exp(hyper[4:])
    slope[4:] = 2 * (scaled**2 * stretch.sum(axis=1)[:, None]).sum(axis=0) - 2 * (scaled * (stretch @ scaled)).sum(
        axis=0
    )
    return value, slope


def _spread(count: int, most: int) -> Integers:
    """Choose at most `most` of `count` row numbers in a fixed shuffle."""
    order = np.random.default_rng(0).permutation(count)[:most]
    return np.sort(order).astype(np.int64)
