"""Conformal intervals per kind, and variance components of the errors.

Split-conformal prediction (Papadopoulos et al., ECML 2002; Lei et al., JASA 2018) on the log error. Whole shape groups
are held out, because rows of one group are no evidence for another. All rows serve both fitting and calibration, as in
cross-conformal prediction (Vovk, 2015).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.predictors.composition.constants import COVERAGE
from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Estimator, Fitted

# Nine in ten of a normal distribution lie within this many deviations.
NORMAL_90 = 1.645
# The half-width, in nats, of the interval of a kind with a handful of rows.
_WIDEST = float(np.log(2.0))
_FEW_EXTRAPOLATED = 10
# Shapes beyond the training range get at least thrice the width: held-out shapes lie just beyond it, real ones far.
_EXTRAPOLATION_FACTOR = 3.0
_FOLDS = 5
# More work than any kernel has: the value for bundles older than the field.
_BOUNDLESS = 1e9
# A range is widened on either side by this share of its width.
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class KindErrors:
    """Errors of one kind, in nats.

    `half_width` covers nine in ten kernels of unseen shape groups, `extrapolated_half_width` those beyond the training
    range. The log error of a kernel is a(kind) + b(shape group) + c(kernel), with the three deviations given. All of
    them contain the noise of the labels, whose standard error is `label_error` (None where it is unknown).
    """

    half_width: float
    extrapolated_half_width: float
    kind_deviation: float
    group_deviation: float
    kernel_deviation: float
    rows: int
    groups: int
    label_error: float | None = None

    @property
    def noise_share(self) -> float | None:
        """The share of the labels' noise in the variance of an interval; None where it is unknown."""
        if self.label_error is None:
            return None
        return min(1.0, (NORMAL_90 * self.label_error / max(self.half_width, 1e-9)) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRange:
    """The least and greatest value of each feature, or its codes, in the order of `Inputs.names`.

    `work` is the greatest log FLOPs + log bytes: a kernel may exceed all others in work without doing so in any size.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    codes: tuple[tuple[int, tuple[float, ...]], ...]
    work: float = _BOUNDLESS


def training_range(inputs: Inputs) -> TrainingRange:
    """Find the range of the columns of `inputs`; of derived columns, only of the work."""
    sized = inputs.matrix[:, : inputs.sizes]
    margin = _TOLERANCE * np.ptp(sized, axis=0)
    codes = tuple((column, tuple(np.unique(inputs.matrix[:, column]).tolist())) for column in inputs.categorical)
    return TrainingRange(
        low=tuple((sized.min(axis=0) - margin).tolist()),
        high=tuple((sized.max(axis=0) + margin).tolist()),
        codes=codes,
        work=float(inputs.log_work.max()),
    )


def outside(inputs: Inputs, known: TrainingRange) -> Flags:
    """Mark kernels with a size or work beyond the training range, or with an unknown code."""
    numeric = [column for column in range(inputs.sizes) if column not in inputs.categorical]
    values = inputs.matrix[:, numeric]
    low, high = np.array(known.low)[numeric], np.array(known.high)[numeric]
    flags: Flags = np.any((values < low - 1e-9) | (values > high + 1e-9), axis=1)
    flags |= inputs.log_work > known.work + 1e-9
    return flags | unseen(inputs, known)


def unseen(inputs: Inputs, known: TrainingRange) -> Flags:
    """Mark kernels with a code that no training row has: another operation, mode or element type."""
    flags = np.zeros(len(inputs), dtype=bool)
    for column, codes in known.codes:
        flags |= ~np.isin(inputs.matrix[:, column], codes)
    return flags


def calibrate(estimator: Estimator, fitted: Fitted, inputs: Inputs, labels: Latencies) -> tuple[KindErrors, Latencies]:
    """Compute errors on held-out shape groups; return them and the held-out predictions.

    The estimator is fitted again per fold unless its fit predicted held-out groups already.
    """
    groups = shape_groups(inputs.kernels)
    folds = group_folds(groups, _FOLDS)
    predicted = fitted.held_out or _refitted(estimator, inputs, labels, folds)
    errors = np.log(labels.hot_ns / predicted.hot_ns)
    beyond = np.zeros(len(inputs), dtype=bool)
    for fold in np.unique(folds):
        own = folds == fold
        if not own.all():
            beyond[own] = outside(inputs.take(own), training_range(inputs.take(~own)))
    found = widened(kind_errors(errors, groups, beyond), fitted.inherited_half_width)
    return replace(found, label_error=labels.label_error), predicted


def widened(errors: KindErrors, inherited: float) -> KindErrors:
    """Add the `inherited` half-width of another predictor's interval, whose errors the rows of `errors` do not show."""
    times = float(np.hypot(1.0, inherited / errors.half_width))
    return replace(
        errors,
        half_width=times * errors.half_width,
        extrapolated_half_width=times * errors.extrapolated_half_width,
        kind_deviation=times * errors.kind_deviation,
        group_deviation=times * errors.group_deviation,
        kernel_deviation=times * errors.kernel_deviation,
    )


def kind_errors(errors: Floats, groups: Sequence[str], beyond: Flags) -> KindErrors:
    """Compute quantiles and variance components of held-out log `errors`; `beyond` marks extrapolated rows."""
    absolute = np.abs(errors)
    half_width = max(conformal_quantile(absolute), 1e-4)
    wide = _EXTRAPOLATION_FACTOR * half_width
    if int(beyond.sum()) >= _FEW_EXTRAPOLATED:
        wide = max(wide, conformal_quantile(absolute[beyond]))
    names, codes = np.unique(np.array(groups), return_inverse=True)
    group_variance, kernel_variance = _components(errors, codes, len(names))
    # the mean of finitely many groups is uncertain, and a measured bias may return
    of_mean = group_variance / len(names) + kernel_variance / len(errors)
    return KindErrors(
        half_width=half_width,
        extrapolated_half_width=wide,
        kind_deviation=float(np.sqrt(float(np.mean(errors)) ** 2 + of_mean)),
        group_deviation=float(np.sqrt(group_variance)),
        kernel_deviation=float(np.sqrt(kernel_variance)),
        rows=len(errors),
        groups=len(names),
    )


def conformal_quantile(scores: Floats, coverage: float = COVERAGE) -> float:
    """Find the ⌈(n + 1) · coverage⌉-th smallest score; of too few scores, log 2 or the largest."""
    if not len(scores):
        return _WIDEST
    rank = int(np.ceil((len(scores) + 1) * coverage))
    if rank > len(scores):
        return max(_WIDEST, float(scores.max()))
    return float(np.partition(scores, rank - 1)[rank - 1])


def _components(errors: Floats, codes: np.ndarray, groups: int) -> tuple[float, float]:
    """Compute variances between and within groups by the method of moments, on winsorised errors."""
    limit = 4 * 1.4826 * float(np.median(np.abs(errors - np.median(errors)))) + 1e-6
    clipped = np.clip(errors - np.median(errors), -limit, limit)
    total = float(np.var(clipped))
    sizes = np.bincount(codes, minlength=groups).astype(np.float64)
    freedom = len(errors) - groups
    if groups < 2 or freedom < 3:
        return total / 2, total / 2
    means = np.bincount(codes, weights=clipped, minlength=groups) / sizes
    within = float(((clipped - means[codes]) ** 2).sum()) / freedom
    between_sum = float((sizes * (means - clipped.mean()) ** 2).sum())
    size = (sizes.sum() - float((sizes**2).sum()) / sizes.sum()) / (groups - 1)
    between = max(0.0, (between_sum / (groups - 1) - within) / size)
    return between, within


def _refitted(estimator: Estimator, inputs: Inputs, labels: Latencies, folds: Integers) -> Latencies:
    hot, rotated = np.empty(len(inputs)), np.empty(len(inputs))
    for fold in np.unique(folds):
        own = folds == fold
        training = ~own if not own.all() else own
        known = labels.take(training)
        predicted = estimator.fit(inputs.take(training), known).predict(inputs.take(own))
        hot[own], rotated[own] = predicted.hot_ns, predicted.rotated_ns
    return Latencies(hot_ns=hot, rotated_ns=rotated)
