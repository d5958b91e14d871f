"""Error over the number of kernels learned from, always judged on the same unseen shape groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opmark.core.canonical import content_id
from opmark.predictors.inputs.single_thread import single_thread
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.judging.scores import LEAST_TRAINING_ROWS, judge_sides
from opmark.predictors.judging.splits import split_rows
from opmark.predictors.model.device_time import KERNELS_PER_SECOND, device_minutes
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import Table, tables
from opmark.predictors.transfer.curve import Donor, transfer_curve

COUNTS = (100, 200, 500, 1000, 2000, 5000)
TRANSFER = "transfer"
# nn-Meter and LitePred tell their measuring time to this share of kernels within ±10 %.
WANTED_ACC10 = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """How good an estimator is that learned from `rows` kernels of all kinds together; `n` judged.

    `minutes` is how long a device is measured for that many rows, at `kernels_per_second`.
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
) -> list[CurvePoint]:
    """The curve of each estimator; rows of every kind in proportion, smaller samples within larger ones.

    The last point is everything there is to learn from.
    """
    sides = []
    for kind, table in tables(evidence.measurements, evidence.hardware).items():
        judging = split_rows("shape-group", table.inputs)
        if judging.any() and int((~judging).sum()) >= LEAST_TRAINING_ROWS:
            sides.append((kind, table.take(~judging), table.take(judging)))
    whole = sum(len(training.inputs) for _, training, _ in sides)
    points = []
    for estimator in estimators:
        for count in [*(count for count in counts if count < whole), whole]:
            if progress is not None:
                progress(estimator, f"{count} kernels")
            fewer = [(kind, _some(training, count / whole), test) for kind, training, test in sides]
            with single_thread():
                judged = judge_sides(fewer, estimator)
            if judged is None:
                continue
            found = all_metrics(judged.measured_ns, judged.predicted_ns)
            rows = sum(len(training.inputs) for _, training, _ in fewer)
            points.append(
                CurvePoint(
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
) -> list[CurvePoint]:
    """The curve of what validation chooses between a donor's predictor and doing without, up to 500 samples.

    Named `transfer`. Other kernels judge than of `learning_curve` where kinds have too few rows to learn from alone.
    Raises `NothingSelectedError` where rows or donors are missing.
    """
    return [
        CurvePoint(
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


def reached(points: Sequence[CurvePoint], *, acc10: float = WANTED_ACC10) -> dict[str, CurvePoint | None]:
    """Per estimator, the first point from which on the share of kernels within ±10 % is at least `acc10`."""
    found: dict[str, CurvePoint | None] = {}
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
    # by a hash, so that the smaller sample is part of the larger one
    order = sorted(range(len(keys)), key=lambda index: content_id(["curve", keys[index]]))
    count = min(len(keys), max(2, round(share * len(keys))))
    return table.take(sorted(order[:count]))
