"""Errors over the number of training kernels, always judged on the same unseen shape groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opmark.core.canonical import content_id
from opmark.predictors.inputs.arrays import single_thread
from opmark.predictors.inputs.tables import Table
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.scores import judge_sides, split_sides
from opmark.predictors.model.metrics import KERNELS_PER_SECOND, all_metrics, device_minutes
from opmark.predictors.transfer.choosing import Donor
from opmark.predictors.transfer.curve import transfer_curve

COUNTS = (100, 200, 500, 1000, 2000, 5000)
TRANSFER = "transfer"
# nn-Meter and LitePred report the measuring time until this share of kernels is within ±10 %.
WANTED_ACC10 = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """Errors on `n` kernels of an estimator that learned from `rows` kernels of all kinds.

    `minutes` is the device time of these rows at `kernels_per_second`.
    """

    estimator: str
    rows: int
    minutes: float
    kernels_per_second: float
    n: int
    median: float
    mape: float
    acc10: float


def learning_curve(
    evidence: Evidence,
    *,
    estimators: Sequence[str] = ("lightgbm", "nn-meter-forest"),
    counts: Sequence[int] = COUNTS,
    kernels_per_second: float = KERNELS_PER_SECOND,
    progress: Callable[[str, str], None] | None = None,
) -> list[LearningPoint]:
    """Compute the curve of each estimator up to all training rows.

    Samples contain rows of every kind in proportion, and smaller samples are parts of larger ones.
    """
    sides = split_sides(evidence, "shape-group")
    whole = sum(len(training.inputs) for _, training, _ in sides)
    points = []
    for estimator in estimators:
        for count in [*(count for count in counts if count < whole), whole]:
            if progress is not None:
                progress(estimator, f"{count} kernels")
            fewer = [(kind, _some(training, count / whole), test) for kind, training, test in sides]
            with single_thread():
                judged = judge_sides(fewer, evidence.learner(estimator))
            if judged is None:
                continue
            found = all_metrics(judged.measured_ns, judged.predicted_ns)
            rows = sum(len(training.inputs) for _, training, _ in fewer)
            points.append(
                LearningPoint(
                    estimator=estimator,
                    rows=rows,
                    minutes=device_minutes(rows, kernels_per_second),
                    kernels_per_second=kernels_per_second,
                    n=len(judged.kinds),
                    median=found["median"],
                    mape=found["mape"],
                    acc10=found["acc10"],
                )
            )
    return points


def with_donor(
    evidence: Evidence, donors: Sequence[Donor], *, kernels_per_second: float = KERNELS_PER_SECOND
) -> list[LearningPoint]:
    """Compute the curve `transfer`: validation chooses between methods with and without a donor, up to 500 samples.

    The judging kernels include kinds with too few rows for `learning_curve`. Raises `NothingSelectedError` without rows
    or donors.
    """
    return [
        LearningPoint(
            estimator=TRANSFER,
            rows=one.samples,
            minutes=device_minutes(one.samples, kernels_per_second),
            kernels_per_second=kernels_per_second,
            n=one.n,
            median=one.median,
            mape=one.mape,
            acc10=one.acc10,
        )
        for one in transfer_curve(evidence.measurements, donors, hardware=evidence.hardware)
        if one.chosen
    ]


def reached(points: Sequence[LearningPoint], *, acc10: float = WANTED_ACC10) -> dict[str, LearningPoint | None]:
    """Find, per estimator, the first point from which on at least `acc10` of the kernels are within ±10 %."""
    found: dict[str, LearningPoint | None] = {}
    for name in dict.fromkeys(point.estimator for point in points):
        own = sorted((point for point in points if point.estimator == name), key=lambda point: point.rows)
        first = None
        for point in reversed(own):
            if point.acc10 < acc10:
                break
            first = point
        found[name] = first
    return found


def _some(table: Table, share: float) -> Table:
    keys = [kernel.key for kernel in table.inputs.kernels]
    # sorted by a hash, so that smaller samples are parts of larger ones
    order = sorted(range(len(keys)), key=lambda index: content_id(["curve", keys[index]]))
    count = min(len(keys), max(2, round(share * len(keys))))
    return table.take(sorted(order[:count]))
