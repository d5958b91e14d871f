"""How sure a prediction is: conformal intervals per kind, and the parts that an error is made of.

Split-conformal prediction (Papadopoulos et al., ECML 2002; Lei et al., JASA 2018) on the log error, with whole shape
groups held out, because rows of one group are no evidence for another. All rows serve both fitting and calibration, as
in cross-conformal prediction (Vovk, 2015).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opmark.predictors.inputs.arrays import Flags, Floats, Integers
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.learners.estimator import Estimator, Fitted, Latencies

COVERAGE = 0.9
# Where nobody knows better: half-width in nats of an interval of a kind with a handful of rows.
_WIDEST = float(np.log(2.0))
_FEW_EXTRAPOLATED = 10
# Shapes beyond the training range get at least thrice the width: what is held out lies just beyond, a real one far.
_EXTRAPOLATION_FACTOR = 3.0
_FOLDS = 5
# More work than any kernel has: what a bundle says that is older than the field.
_BOUNDLESS = 1e9
# A range reaches this share of its own width further on either side.
_TOLERANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class KindErrors:
    """Errors of one kind, in nats.

    `half_width` covers nine in ten kernels of unseen shape groups, `extrapolated_half_width` those out of range.
    The log error of a kernel is a(kind) + b(shape group) + c(kernel) with these deviations.
    """

    half_width: float
    extrapolated_half_width: float
    kind_deviation: float
    group_deviation: float
    kernel_deviation: float
    rows: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRange:
    """Per feature: its least and greatest value, or the codes seen. Names as in `Inputs.names`.

    `work` is the greatest log FLOPs + log bytes: a kernel may be larger than all without being so in any one size.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    codes: tuple[tuple[int, tuple[float, ...]], ...]
    work: float = _BOUNDLESS


def training_range(inputs: Inputs) -> TrainingRange:
    """What the columns of `inputs` span; of derived columns only the work."""
    sized = inputs.matrix[:, : inputs.sizes]
    margin = _TOLERANCE * np.ptp(sized, axis=0)
    codes = tuple((column, tuple(np.unique(inputs.matrix[:, column]).tolist())) for column in inputs.categorical)
    return TrainingRange(
        low=tuple((sized.min(axis=0) - margin).tolist()),
        high=tuple((sized.max(axis=0) + margin).tolist()),
        codes=codes,
        work=float(_work(inputs).max()),
    )


def outside(inputs: Inputs, known: TrainingRange) -> Flags:
    """Whether each kernel has a size or more work than the training range, or a code that was never seen."""
    numeric = [column for column in range(inputs.sizes) if column not in inputs.categorical]
    values = inputs.matrix[:, numeric]
    low, high = np.array(known.low)[numeric], np.array(known.high)[numeric]
    flags: Flags = np.any((values < low - 1e-9) | (values > high + 1e-9), axis=1)
    flags |= _work(inputs) > known.work + 1e-9
    for column, codes in known.codes:
        flags |= ~np.isin(inputs.matrix[:, column], codes)
    return flags


def _work(inputs: Inputs) -> Floats:
    work: Floats = np.log1p(inputs.flops) + np.log1p(inputs.moved_bytes)
    return work


def calibrate(estimator: Estimator, fitted: Fitted, inputs: Inputs, labels: Latencies) -> tuple[KindErrors, Latencies]:
    """Errors on held-out shape groups, and the predictions that made them.

    The estimator is fitted again per fold unless fitting predicted held-out groups by itself.
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
    return kind_errors(errors, groups, beyond), predicted


def kind_errors(errors: Floats, groups: Sequence[str], beyond: Flags) -> KindErrors:
    """Quantiles and variance components of held-out log `errors`; `beyond` marks rows outside their fold's range."""
    absolute = np.abs(errors)
    half_width = max(conformal_quantile(absolute), 1e-4)
    wide = _EXTRAPOLATION_FACTOR * half_width
    if int(beyond.sum()) >= _FEW_EXTRAPOLATED:
        wide = max(wide, conformal_quantile(absolute[beyond]))
    names, codes = np.unique(np.array(groups), return_inverse=True)
    group_variance, kernel_variance = _components(errors, codes, len(names))
    # the mean of finitely many groups is uncertain, and a bias that was seen may be there again
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
    """The ⌈(n + 1) · coverage⌉-th smallest score; with too few scores for that, a factor of two or their largest."""
    if not len(scores):
        return _WIDEST
    rank = int(np.ceil((len(scores) + 1) * coverage))
    if rank > len(scores):
        return max(_WIDEST, float(scores.max()))
    return float(np.partition(scores, rank - 1)[rank - 1])


def _components(errors: Floats, codes: np.ndarray, groups: int) -> tuple[float, float]:
    """Variances between and within groups: the method of moments for unequal group sizes, on winsorised errors."""
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
        known = Latencies(hot_ns=labels.hot_ns[training], rotated_ns=labels.rotated_ns[training])
        predicted = estimator.fit(inputs.take(training), known).predict(inputs.take(own))
        hot[own], rotated[own] = predicted.hot_ns, predicted.rotated_ns
    return Latencies(hot_ns=hot, rotated_ns=rotated)
