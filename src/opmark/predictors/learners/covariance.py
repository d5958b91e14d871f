"""The covariance of a Gaussian process: linear plus one Matérn 5/2 or three, each with a length per column.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006), chapter 4. Three tell apart what
changes slowly with a size and what changes fast.
"""

import numpy as np

from opmark.predictors.inputs.arrays import Floats

_LEAST_NOISE = 0.004
# Degrees of freedom of the errors' distribution: the fewer, the less an outlier counts.
_FREEDOM = 4.0
_MOST_NOISE = 400.0

# `hyper` is the log of [noise deviation, constant, linear deviation], and for each Matérn covariance [deviation, one
# length per column].
_BEFORE_PARTS = 3
# Each further Matérn covariance begins with half the deviation of the one before.
_SMALLER = float(np.log(2.0))
# Its lengths begin apart from those of the first by these logarithms: one changes faster than the first, one slower.
_FURTHER = (-1.0, 0.5)


def initial_hyper(columns: int, target: Floats) -> Floats:
    """Start a search: little noise, and lengths so great that all columns together decide."""
    spread = max(float(target.std()), 0.02)
    first = [max(0.1 * spread, 2 * _LEAST_NOISE), spread, 0.3 * spread, spread]
    start: Floats = np.log(np.array(first + [2.0 * np.sqrt(max(columns, 1))] * columns))
    return start


def with_further(hyper: Floats, columns: int, *, apart: bool = True) -> Floats:
    """Append two Matérn covariances, smaller than the first, with other lengths or, unless `apart`, the same ones."""
    deviation, *lengths = parts_of(hyper, columns)[0]
    parts = [
        [deviation - number * _SMALLER, *(np.array(lengths) + offset * apart)]
        for number, offset in enumerate(_FURTHER, start=1)
    ]
    return np.concatenate([hyper, *parts])


def is_complete(hyper: Floats, columns: int) -> bool:
    """True if `hyper` has all lengths of one Matérn covariance or more."""
    return len(hyper) > _BEFORE_PARTS and (len(hyper) - _BEFORE_PARTS) % (columns + 1) == 0


def parts_of(hyper: Floats, columns: int) -> Floats:
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
    first, *others = parts_of(hyper, left.shape[1])
    total = _matern(left, right, first)
    for part in others:
        total += _matern(left, right, part)
    return total


def matern_variance(hyper: Floats, columns: int) -> float:
    """The sum of the Matérn covariances of a point with itself."""
    return float(np.exp(2 * parts_of(hyper, columns)[:, 0]).sum())


def _matern(left: Floats, right: Floats, part: Floats) -> Floats:
    """Compute s² (1 + d + d²/3) exp(−d), in place because most of the time of a prediction is spent here."""
    distance = distances(left, right, part)
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


def distances(left: Floats, right: Floats, part: Floats) -> Floats:
    """Compute the squared distance of each row of `left` from each of `right`, in lengths of one Matérn `part`."""
    lengths = np.exp(part[1:])
    one, two = left / lengths, right / lengths
    squared: Floats = one @ (-2 * two.T)
    squared += (one**2).sum(axis=1)[:, None]
    squared += (two**2).sum(axis=1)[None, :]
    np.maximum(squared, 0.0, out=squared)
    return squared
