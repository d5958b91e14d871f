"""The error of every transfer method over the number of samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.measurement import Measurement
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.model.metrics import KERNELS_PER_SECOND, all_metrics, device_minutes
from opmark.predictors.transfer.choosing import (
    WITHOUT_DONOR,
    Donor,
    best_of,
    nearest_donor,
    rows_of,
    sampled,
    sides,
    validations,
    weights_of,
)
from opmark.predictors.transfer.methods import METHODS, Rows

SAMPLES = (20, 50, 100, 200, 500)
CHOSEN = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferPoint:
    """One method after `samples` measurements, judged on `n` kernels of unseen shape groups.

    `validation` is the mean absolute log error (at most log 2) on the samples themselves; the method with the least is
    `chosen`. `divergence` is the donor's, in nats. `minutes` is the device time of the samples at `kernels_per_second`.
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
    """Judge every method at every number of samples for which there are rows.

    One shape group in five judges and is never sampled. Raises `NothingSelectedError` without rows or donors.
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
