"""A Gaussian process that learns from more rows than it keeps: some, the inducing rows, stand for all.

E. Snelson, Z. Ghahramani: Sparse Gaussian Processes using Pseudo-inputs (NIPS 2005); the fully independent training
conditional of J. Quiñonero-Candela, C. E. Rasmussen: A Unifying View of Sparse Approximate Gaussian Process Regression
(JMLR 6, 2005), section 6. Given the inducing rows, the others are independent: what they do not explain of a row's
variance counts as its noise. Learning costs rows times inducing rows², instead of rows³.
"""

from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Floats, Integers
from opmark.predictors.learners.covariance import covariance, noise_variance, variances

# A share of the mean variance, added to the inducing rows' own: nearly equal rows have no Cholesky factor.
_JITTER = 1e-6
_MOST_LEVERAGE = 1 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class InducingRows:
    """Learns `target`, which has mean 0, from all rows by the weights of the inducing ones.

    The target is a linear regression on the `basis` (inducing rows × rows), with coefficients of variance 1. What the
    basis leaves `unexplained` of a row's variance is noise. `factor` is the inducing rows' Cholesky factor.
    """

    target: Floats
    hyper: Floats
    factor: Floats
    basis: Floats
    unexplained: Floats

    @classmethod
    def of(cls, points: Floats, target: Floats, kept: Integers, hyper: Floats) -> "InducingRows":
        """Make those of the `points` that are `kept` inducing rows."""
        from scipy.linalg import cholesky, solve_triangular

        inducing = points[kept]
        among = covariance(inducing, inducing, hyper)
        among[np.diag_indices_from(among)] += _JITTER * float(np.diag(among).mean())
        factor = cholesky(among, lower=True)
        basis = solve_triangular(factor, covariance(inducing, points, hyper), lower=True)
        unexplained = np.maximum(variances(points, hyper) - (basis**2).sum(axis=0), 0.0)
        return cls(target=target, hyper=hyper, factor=factor, basis=basis, unexplained=unexplained)

    def left_out(self, noise: Floats) -> tuple[Floats, Floats]:
        """Compute how far each row is off when predicted from all others, and the variance of that."""
        from scipy.linalg import cholesky, solve_triangular

        variance = self._variance(noise)
        precision, moment = _normal_equations(self.basis, variance, self.target)
        factor = cholesky(precision, lower=True)
        spread = solve_triangular(factor, self.basis, lower=True)
        leverage = np.minimum((spread**2).sum(axis=0) / variance, _MOST_LEVERAGE)
        fitted = spread.T @ solve_triangular(factor, moment, lower=True)
        return (self.target - fitted) / (1 - leverage), variance / (1 - leverage)

    def solved(self, noise: Floats, folds: Integers) -> tuple[Floats, Floats]:
        """The weight of each row that is kept, and predictions of each row from all other folds."""
        from scipy.linalg import solve, solve_triangular

        basis, variance = self.basis, self._variance(noise)
        precision, moment = _normal_equations(basis, variance, self.target)
        held_out = np.empty(len(self.target))
        for fold in np.unique(folds):
            own = folds == fold
            own_precision, own_moment = _normal_equations(basis[:, own], variance[own], self.target[own])
            # the identity belongs to the prior, and stays
            rest = precision - own_precision + np.eye(len(precision))
            held_out[own] = basis[:, own].T @ solve(rest, moment - own_moment, assume_a="pos")
        coefficients = solve(precision, moment, assume_a="pos")
        weights: Floats = solve_triangular(self.factor, coefficients, lower=True, trans="T")
        return weights, held_out

    def _variance(self, noise: Floats) -> Floats:
        """The variance of each row's error in the regression."""
        found: Floats = noise_variance(self.hyper) * noise + self.unexplained
        return found


def _normal_equations(basis: Floats, variance: Floats, target: Floats) -> tuple[Floats, Floats]:
    """The precision of the coefficients, with a prior of variance 1, and the basis times the weighted target."""
    weighted = basis / variance
    precision: Floats = weighted @ basis.T
    precision[np.diag_indices_from(precision)] += 1.0
    moment: Floats = weighted @ target
    return precision, moment
