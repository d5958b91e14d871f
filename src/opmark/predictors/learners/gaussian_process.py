"""Gaussian-process regression for tens to thousands of rows: a smooth surface with one length per feature, or three.

C. E. Rasmussen, C. K. I. Williams: Gaussian Processes for Machine Learning (2006). The covariance and its lengths are
in `learners.covariance`. Residuals of held-out groups follow from the full fit (section 5.4.2, in blocks).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers, check_shapes
from opmark.predictors.learners.covariance import (
    covariance,
    initial_hyper,
    is_complete,
    matern,
    matern_variance,
    noise_variance,
    student_noise,
    with_further,
)
from opmark.predictors.learners.inducing_rows import InducingRows
from opmark.predictors.learners.likelihood import SEARCH_STEPS, inverted, searched_hyper

# A step of the search for lengths costs rows³; this many rows determine them well enough.
SEARCH_ROWS = 480
# A prediction costs one covariance per row that is kept, and a fit at least its square per training row.
_MOST_ROWS = 2000
_ROBUST_ROUNDS = 2
# A brief search tells whether a column helps, in a third of the time of a whole one.
_BRIEF_STEPS = 15
_BRIEF_ROWS = 800
# Rows predicted at once; they and their covariances should stay in cache.
_CHUNK = 512
# Logarithms, as all of `hyper`: beyond, their squares overflow.
_MOST_HYPER = 300.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthSearch:
    """A search for lengths on so many `rows`, from `start`, the `hyper` of a process of the same columns.

    With `further` the covariance has three Matérn parts, which follow what changes slowly and what changes fast. A
    `brief` search ends early, in a process that keeps fewer rows.
    """

    rows: int = SEARCH_ROWS
    start: Floats | None = None
    further: bool = False
    brief: bool = False

    @property
    def steps(self) -> int:
        """The most steps that the search takes."""
        return _BRIEF_STEPS if self.brief else SEARCH_STEPS

    def beginning(self, columns: int, target: Floats) -> tuple[Floats, Floats]:
        """Where the search begins, and what it expects."""
        expected = initial_hyper(columns, target)
        begin = expected if self.start is None else self.start
        if not self.further:
            return begin, expected
        return with_further(begin, columns), with_further(expected, columns, apart=False)


_USUAL_SEARCH = LengthSearch()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GaussianProcess:
    """A fitted process over columns standardised by `centre` and `scale`.

    `weights` belong to the `rows` that it keeps: K⁻¹(y − mean) where they are all that it learned from.
    """

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
                matern(points[start : start + _CHUNK], self.rows, self.hyper) @ self.weights
            )
        return total

    def similarity(self, matrix: Floats) -> Floats:
        """Find the correlation, 0 to 1, of each row of `matrix` with the training row most like it."""
        points = (matrix - self.centre) / self.scale
        alike = matern(points, self.rows, self.hyper).max(axis=1) / matern_variance(self.hyper, points.shape[1])
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
        hyper=(arrays["hyper"], (arrays["hyper"].size,)),
        weights=(arrays["weights"], (len(arrays["rows"]),)),
    )
    if not is_complete(arrays["hyper"], columns):
        raise ValueError(f"hyper has {len(arrays['hyper'])} numbers, not those of {columns} columns")
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
    search: LengthSearch = _USUAL_SEARCH,
) -> tuple[GaussianProcess, Floats]:
    """Fit a process to `target`; return it, and predictions of each row made without the row's fold.

    A row's noise is the greater, the smaller its `weight`. Reweighting makes errors follow Student's t, so that
    outliers count little. Of more than `most_rows`, an even spread of so many is kept and stands for all
    (`learners.inducing_rows`).
    """
    centre = matrix.mean(axis=0)
    deviation = matrix.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)
    points = (matrix - centre) / scale
    mean = float(np.median(target))
    centred = target - mean
    kept = _spread(len(target), min(most_rows, _BRIEF_ROWS) if search.brief else most_rows)
    given = np.ones(len(target)) if weight is None else 1 / weight

    def learner(hyper: Floats) -> "_AllRows | InducingRows":
        if len(kept) == len(target):
            return _AllRows(points, centred, hyper)
        return InducingRows.of(points, centred, kept, hyper)

    searched = _spread(len(target), search.rows)
    noise = given
    begin, expected = search.beginning(points.shape[1], centred)
    hyper = searched_hyper(
        points[searched], centred[searched], noise[searched], begin, expected=expected, steps=search.steps
    )
    last = learner(hyper)
    for _ in range(1 if search.brief else _ROBUST_ROUNDS):
        noise = given * student_noise(*last.left_out(noise), noise, hyper)
    # without outliers the lengths are others: only then does a column show its gain
    hyper = searched_hyper(points[searched], centred[searched], noise[searched], hyper, steps=search.steps)
    last = learner(hyper)
    noise = given * student_noise(*last.left_out(noise), noise, hyper)
    weights, held_out = last.solved(noise, folds)
    process = GaussianProcess(centre=centre, scale=scale, hyper=hyper, rows=points[kept], weights=weights, mean=mean)
    return process, mean + held_out


@dataclass(frozen=True, slots=True)
class _AllRows:
    """Learns `target`, which has mean 0, from every one of the `points`."""

    points: Floats
    target: Floats
    hyper: Floats

    def left_out(self, noise: Floats) -> tuple[Floats, Floats]:
        """Compute how far each row is off when predicted from all others, and the variance of that."""
        inverse = self._inverse(noise)
        variance = 1 / np.diag(inverse)
        return (inverse @ self.target) * variance, variance

    def solved(self, noise: Floats, folds: Integers) -> tuple[Floats, Floats]:
        """The weight of each row, and predictions of each row from all other folds."""
        inverse = self._inverse(noise)
        weights: Floats = inverse @ self.target
        held_out = np.empty(len(self.target))
        for fold in np.unique(folds):
            inside = np.flatnonzero(folds == fold)
            without = np.zeros_like(weights)
            if inside.size < len(weights):
                # K⁻¹ of the other rows follows from the Schur complement of this fold's block
                block = inverse[np.ix_(inside, inside)]
                without = weights - inverse[:, inside] @ np.linalg.solve(block, weights[inside])
                without[inside] = 0.0
            held_out[inside] = covariance(self.points[inside], self.points, self.hyper) @ without
        return weights, held_out

    def _inverse(self, noise: Floats) -> Floats:
        total = covariance(self.points, self.points, self.hyper)
        total[np.diag_indices_from(total)] += noise_variance(self.hyper) * noise
        try:
            return inverted(total)[0]
        except np.linalg.LinAlgError:  # by the last digits; the usual way tells nothing of it
            inverse: Floats = np.asarray(np.linalg.inv(total), dtype=np.float64)
        return inverse


def _spread(count: int, most: int) -> Integers:
    """Choose at most `most` of `count` row numbers in a fixed shuffle."""
    order = np.random.default_rng(0).permutation(count)[:most]
    return np.sort(order).astype(np.int64)
