"""Choices of a transfer: samples, the nearest donor, and the method with the least validation error.

After LitePred (Chengquan Feng et al., NSDI 2024): the donor diverges least on a probe set, and the difference between
the new device and the donor's prediction is learned. Validation on the samples decides whether that beats learning from
scratch, one factor or a ridge regression, because it depends on their number.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.measurement import Measurement
from opmark.predictors.inputs.arrays import Floats, Integers
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.inputs.shape_groups import group_folds, held_out_groups, shape_groups
from opmark.predictors.inputs.tables import Table, kernels_of, tables
from opmark.predictors.learners.roofline import fit_roofline
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.transfer.methods import METHODS, Adaptation, Rows

# Methods that never ask the donor.
WITHOUT_DONOR = ("scratch", "roofline")
_FOLDS = 4
# Donors are compared on this many samples at most.
_PROBES = 100
_FEWEST_FOR_ROOFLINE = 5
# Errors beyond a factor of two count as that factor: all are useless, and a single row should not decide.
USELESS = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Donor:
    """The predictor of another target, and its name in reports."""

    name: str
    model: CostModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Predictions of samples whose shape group was held out, and their mean absolute log error (at most log 2)."""

    score: float
    predicted_ns: Floats


def sides(measurements: Sequence[Measurement], hardware: Hardware) -> tuple[list[Table], list[Table]]:
    """Split rows into a pool to sample from and one shape group in five that judges, without kinds of one group."""
    pool, test = [], []
    for table in tables(measurements, hardware).values():
        judging = held_out_groups(table.inputs.kernels)
        if judging.any() and not judging.all():
            pool.append(table.take(~judging))
            test.append(table.take(judging))
    return pool, test


def sampled(pool: Sequence[Table], count: int) -> list[Table]:
    """Draw `count` rows, kinds in proportion but one row of each first; smaller samples are parts of larger ones."""
    whole = sum(len(table.inputs) for table in pool)
    ranked: list[tuple[float, str, int, int]] = []
    for number, table in enumerate(pool):
        keys = [kernel.key for kernel in table.inputs.kernels]
        order = sorted(range(len(keys)), key=lambda index: content_id(["transfer", keys[index]]))
        # the first row of every kind precedes all others, which follow at the pace of their kind
        ranked += [
            (-1.0 if place == 0 else place * whole / len(keys), keys[index], number, index)
            for place, index in enumerate(order)
        ]
    taken: dict[int, list[int]] = {}
    for _, _, number, index in sorted(ranked)[:count]:
        taken.setdefault(number, []).append(index)
    return [pool[number].take(sorted(rows)) for number, rows in sorted(taken.items())]


def weights_of(pool: Sequence[Table], chosen: Sequence[Table]) -> Floats:
    """Weigh each sample by the rows of its kind in the pool, because small samples hold too many of rare kinds."""
    sizes = {table.inputs.kind: len(table.inputs) for table in pool}
    return np.concatenate(
        [np.full(len(table.inputs), sizes[table.inputs.kind] / len(table.inputs)) for table in chosen]
    )


def rows_of(found: Sequence[Table], model: CostModel) -> Rows:
    """Join tables and the predictions of `model` for their kernels."""
    return Rows(tables=tuple(found), donor_ns=tuple(model.kernels(table.inputs.kernels).hot_ns for table in found))


def nearest_donor(sample: Sequence[Table], donors: Sequence[Donor]) -> tuple[Donor, float]:
    """Find the donor whose utilisation diverges least from the sample's; return it and the divergence in nats."""
    probes = sampled(sample, min(_PROBES, sum(len(table.inputs) for table in sample)))
    distances = [divergence(probes, donor.model) for donor in donors]
    best = int(np.argmin(distances))
    return donors[best], distances[best]


def divergence(probes: Sequence[Table], model: CostModel) -> float:
    """Compute the distance of log utilisations: the mean over kinds of the median absolute deviation.

    A constant factor, overall or for all kernels of a kind, does not count, because it is easily learned. A kind that
    the donor does not know counts as a factor of two.
    """
    differences, weights = [], []
    for table in probes:
        kernels = table.inputs.kernels
        if table.inputs.kind not in model.bundle.kinds:
            differences.append(USELESS)
        elif len(kernels) > 1:
            donor = model.kernels(kernels).hot_ns
            apart = _utilisation(table, table.labels.hot_ns) - _utilisation(table, donor)
            differences.append(float(np.median(np.abs(apart - np.median(apart)))))
        else:
            continue
        weights.append(len(kernels))
    return float(np.average(differences, weights=weights)) if differences else USELESS


def _utilisation(table: Table, latency_ns: Floats) -> Floats:
    inputs = table.inputs
    if len(inputs) < _FEWEST_FOR_ROOFLINE:
        return np.log(latency_ns)
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, latency_ns)
    return np.log(latency_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))


def validations(known: Rows, weights: Floats, methods: Collection[str] = METHODS) -> dict[str, Validation]:
    """Validate `methods` on the samples alone. Raises `NothingSelectedError` with fewer than two shape groups."""
    groups = shape_groups(kernels_of(known.tables))
    if len(set(groups)) < 2:
        raise NothingSelectedError("too few samples to validate on", hint="measure kernels of at least two shapes")
    folds = group_folds(groups, _FOLDS)
    return {name: _validated(METHODS[name], known, weights, folds) for name in methods}


def best_of(found: Mapping[str, Validation]) -> str:
    """Name the method with the least error on held-out samples."""
    return min(found, key=lambda name: (found[name].score, name))


def _validated(method: Callable[[Rows], Adaptation], rows: Rows, weights: Floats, folds: Integers) -> Validation:
    """Predict the rows of each fold without it, and compute their weighted mean absolute log error.

    Errors beyond a factor of two count as that factor: all are useless, and a single row should not decide.
    """
    predicted = np.empty(len(folds))
    for fold in np.unique(folds):
        own = folds == fold
        predicted[own] = method(rows.take(~own)).hot_ns(rows.take(own))
    errors = np.abs(np.log(predicted / rows.hot_ns))
    return Validation(score=float(np.average(np.minimum(errors, USELESS), weights=weights)), predicted_ns=predicted)
