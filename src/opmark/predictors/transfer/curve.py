"""A new device from a few samples and another device's predictor, and when that is worth it.

After LitePred (Chengquan Feng et al., NSDI 2024): the donor is the one that diverges least on a probe set, and what is
learned is how far the new device lies from the donor's prediction. Whether that beats learning from scratch, one
factor or a ridge regression is decided by validation on the samples, for it depends on how many there are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError
from opmark.core.measurement import Measurement
from opmark.predictors.inputs.arrays import Floats, Integers
from opmark.predictors.inputs.hardware import Hardware
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.inputs.single_thread import single_thread
from opmark.predictors.judging.splits import split_rows
from opmark.predictors.learners.roofline import fit_roofline
from opmark.predictors.model.cost_model import CostModel
from opmark.predictors.model.device_time import KERNELS_PER_SECOND, device_minutes
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import Table, tables
from opmark.predictors.transfer.methods import METHODS, Adaptation, Rows

SAMPLES = (20, 50, 100, 200, 500)
SCRATCH = "scratch"
# Methods that never ask the donor.
WITHOUT_DONOR = (SCRATCH, "roofline")
CHOSEN = "chosen"
_FOLDS = 4
# Donors are compared on this many samples at most.
_PROBES = 100
_FEWEST_FOR_ROOFLINE = 5
_USELESS = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Donor:
    """Another target's predictor under the name it is reported by."""

    name: str
    model: CostModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Predictions of the samples, whole shape groups held out, and their mean absolute log error (at most log 2)."""

    score: float
    predicted_ns: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPoint:
    """One method after `samples` measurements, judged on `n` kernels of unseen shape groups.

    `validation` is the mean absolute log error (at most log 2) among the samples themselves, by which `chosen` is
    chosen; `divergence` is the donor's, in nats. `minutes` is how long the device is measured for the samples, at
    `kernels_per_second`.
    """

    samples: int
    minutes: float
    kernels_per_second: float
    method: str
    donor: str
    divergence: float
    validation: float
    chosen: bool
    n: int
    median: float
    mape: float
    acc10: float


def transfer_curve(
    measurements: Sequence[Measurement],
    donors: Sequence[Donor],
    *,
    hardware: Hardware,
    samples: Sequence[int] = SAMPLES,
    kernels_per_second: float = KERNELS_PER_SECOND,
    progress: Callable[[str], None] | None = None,
) -> list[TransferPoint]:
    """Every method at every number of samples that there are rows for, and which one validation chooses.

    One shape group in five judges and is never sampled. Raises `NothingSelectedError` where rows or donors are missing.
    """
    pool, test = sides(measurements, hardware)
    if not pool or not donors:
        raise NothingSelectedError("nothing to transfer between", hint="name a donor, and a target with measurements")
    points = []
    whole = sum(len(table.inputs) for table in pool)
    with single_thread():
        for count in [count for count in samples if count <= whole]:
            if progress is not None:
                progress(f"{count} samples")
            chosen = sampled(pool, count)
            donor, divergence = nearest_donor(chosen, donors)
            known, asked = rows_of(chosen, donor.model), rows_of(test, donor.model)
            pace = (count, device_minutes(count, kernels_per_second), kernels_per_second)
            points += _points(known, asked, weights_of(pool, chosen), pace, (donor.name, divergence))
    return points


def sides(measurements: Sequence[Measurement], hardware: Hardware) -> tuple[list[Table], list[Table]]:
    """What samples are drawn from, and the one shape group in five that judges; kinds that have no two sides miss."""
    pool, test = [], []
    for table in tables(measurements, hardware).values():
        judging = split_rows("shape-group", table.inputs)
        if judging.any() and not judging.all():
            pool.append(table.take(~judging))
            test.append(table.take(judging))
    return pool, test


def nearest_donor(sample: Sequence[Table], donors: Sequence[Donor]) -> tuple[Donor, float]:
    """The donor whose utilisation diverges least from the sample's, and by how much, in nats."""
    probes = sampled(sample, min(_PROBES, sum(len(table.inputs) for table in sample)))
    distances = [divergence(probes, donor.model) for donor in donors]
    best = int(np.argmin(distances))
    return donors[best], distances[best]


def divergence(probes: Sequence[Table], model: CostModel) -> float:
    """How far log utilisations of the same kernels lie apart, the mean over kinds of the median absolute deviation.

    A donor that is faster by a factor, overall or in all kernels of a kind, does not diverge: that is easily learned.
    A kind it knows nothing of counts as a factor of two.
    """
    differences, weights = [], []
    for table in probes:
        kernels = table.inputs.kernels
        if table.inputs.kind not in model.bundle.kinds:
            differences.append(_USELESS)
        elif len(kernels) > 1:
            donor = model.kernels(kernels).hot_ns
            apart = _utilisation(table, table.labels.hot_ns) - _utilisation(table, donor)
            differences.append(float(np.median(np.abs(apart - np.median(apart)))))
        else:
            continue
        weights.append(len(kernels))
    return float(np.average(differences, weights=weights)) if differences else _USELESS


def _utilisation(table: Table, latency_ns: Floats) -> Floats:
    inputs = table.inputs
    if len(inputs) < _FEWEST_FOR_ROOFLINE:
        return np.log(latency_ns)
    roofline = fit_roofline(inputs.flops, inputs.moved_bytes, latency_ns)
    return np.log(latency_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))


def validations(known: Rows, weights: Floats) -> dict[str, Validation]:
    """How every method does on the samples alone. Raises `NothingSelectedError` with fewer than two shape groups."""
    groups = shape_groups([kernel for table in known.tables for kernel in table.inputs.kernels])
    if len(set(groups)) < 2:
        raise NothingSelectedError("too few samples to validate on", hint="measure kernels of at least two shapes")
    folds = group_folds(groups, _FOLDS)
    return {name: _validated(method, known, weights, folds) for name, method in METHODS.items()}


def best_of(found: Mapping[str, Validation]) -> str:
    """The method with the least error on held-out samples."""
    return min(found, key=lambda name: (found[name].score, name))


def _points(
    known: Rows, asked: Rows, weights: Floats, pace: tuple[int, float, float], donor: tuple[str, float]
) -> list[TransferPoint]:
    samples, minutes, kernels_per_second = pace
    name_of_donor, distance = donor
    scores = validations(known, weights)
    best = best_of(scores)
    points = []
    for name, method in METHODS.items():
        predicted = method(known).hot_ns(asked)
        found = all_metrics(asked.hot_ns, predicted)
        points.append(
            TransferPoint(
                samples=samples,
                minutes=minutes,
                kernels_per_second=kernels_per_second,
                method=name,
                donor="" if name in WITHOUT_DONOR else name_of_donor,
                divergence=distance,
                validation=scores[name].score,
                chosen=name == best,
                n=len(predicted),
                median=found["median"],
                mape=found["mape"],
                acc10=found["acc10"],
            )
        )
    return points


def weights_of(pool: Sequence[Table], chosen: Sequence[Table]) -> Floats:
    """What each sample stands for: rows of its kind in the pool, for small samples hold too many of rare kinds."""
    sizes = {table.inputs.kind: len(table.inputs) for table in pool}
    return np.concatenate(
        [np.full(len(table.inputs), sizes[table.inputs.kind] / len(table.inputs)) for table in chosen]
    )


def _validated(method: Callable[[Rows], Adaptation], rows: Rows, weights: Floats, folds: Integers) -> Validation:
    """Predictions of each fold's rows without it, and their weighted mean absolute log error.

    An error of a factor of two counts like one of ten: neither is of use, and a single row should not decide.
    """
    predicted = np.empty(len(folds))
    for fold in np.unique(folds):
        own = folds == fold
        predicted[own] = method(rows.take(~own)).hot_ns(rows.take(own))
    errors = np.abs(np.log(predicted / rows.hot_ns))
    return Validation(score=float(np.average(np.minimum(errors, _USELESS), weights=weights)), predicted_ns=predicted)


def rows_of(found: Sequence[Table], model: CostModel) -> Rows:
    """Tables with what `model` predicts for their kernels."""
    return Rows(tables=tuple(found), donor_ns=tuple(model.kernels(table.inputs.kernels).hot_ns for table in found))


def sampled(pool: Sequence[Table], count: int) -> list[Table]:
    """`count` rows of all kinds in proportion, at least one of each while they last; larger samples hold smaller."""
    whole = sum(len(table.inputs) for table in pool)
    ranked: list[tuple[float, str, int, int]] = []
    for number, table in enumerate(pool):
        keys = [kernel.key for kernel in table.inputs.kernels]
        order = sorted(range(len(keys)), key=lambda index: content_id(["transfer", keys[index]]))
        # the first of every kind comes first, then each kind at its own pace
        ranked += [
            (-1.0 if place == 0 else place * whole / len(keys), keys[index], number, index)
            for place, index in enumerate(order)
        ]
    taken: dict[int, list[int]] = {}
    for _, _, number, index in sorted(ranked)[:count]:
        taken.setdefault(number, []).append(index)
    return [pool[number].take(sorted(rows)) for number, rows in sorted(taken.items())]
