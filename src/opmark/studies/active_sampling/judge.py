"""Judge how well each cell is predicted from the rows measured so far."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opmark.core.measurements.measurement import USABLE, Measurement
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Flags, Floats, single_thread
from opmark.predictors.inputs.features import Hardware, Inputs
from opmark.predictors.inputs.tables import Table, tables
from opmark.predictors.model.intervals import KindErrors, TrainingRange, calibrate, outside, training_range
from opmark.predictors.model.metrics import METRICS
from opmark.studies.active_sampling.allocation import Cell

# The metrics of a target on the accuracy curve.
CURVE_METRICS = ("median", "p90", "acc10")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellJudgement:
    """The training rows of a cell, and the errors of its predictor.

    `error` is the median absolute relative error of the training rows, each predicted without its shape group.
    `measured_ns` and `predicted_ns` belong to the rows set aside, which are never trained on.
    """

    known: Inputs
    range: TrainingRange
    errors: KindErrors
    error: float
    measured_ns: Floats
    predicted_ns: Floats

    def widths(self, candidates: Inputs) -> Floats:
        """The half-width of each candidate's 90 % interval, in nats."""
        beyond: Flags = outside(candidates, self.range)
        widths: Floats = np.where(beyond, self.errors.extrapolated_half_width, self.errors.half_width)
        return widths


@dataclass(kw_only=True)
class Judge:
    """Fits an estimator per cell, and again only when the cell has new rows."""

    estimator: str = "lightgbm"
    hardware: Hardware = field(default_factory=Hardware)
    _kept: dict[Cell, tuple[tuple[int, int], CellJudgement]] = field(default_factory=dict)

    def judge(
        self, measurements: Sequence[Measurement], judging: Collection[tuple[str, str]]
    ) -> dict[Cell, CellJudgement]:
        """Judge every cell that has a usable training row; `judging` are the (target, kernel key) pairs set aside."""
        found: dict[Cell, CellJudgement] = {}
        for target in sorted({row.target for row in measurements}):
            usable = [row for row in measurements if row.target == target and row.status in USABLE]
            learn, test = (
                tables([row for row in usable if ((target, row.kernel.key) in judging) == judges], self.hardware)
                for judges in (False, True)
            )
            for kind, table in learn.items():
                judges = test.get(kind)
                rows = len(table.inputs), 0 if judges is None else len(judges.inputs)
                kept = self._kept.get((target, kind))
                if kept is None or kept[0] != rows:
                    kept = rows, self._judged(table, judges)
                    self._kept[target, kind] = kept
                found[target, kind] = kept[1]
        return found

    def _judged(self, table: Table, test: Table | None) -> CellJudgement:
        learner = ESTIMATORS.load(self.estimator)
        with single_thread():
            fitted = learner.fit(table.inputs, table.labels)
            errors, held_out = calibrate(learner, fitted, table.inputs, table.labels)
            predicted = np.empty(0) if test is None else fitted.predict(test.inputs).hot_ns
        return CellJudgement(
            known=table.inputs,
            range=training_range(table.inputs),
            errors=errors,
            error=METRICS["median"](table.labels.hot_ns, held_out.hot_ns),
            measured_ns=np.empty(0) if test is None else test.labels.hot_ns,
            predicted_ns=predicted,
        )


def target_metrics(judgements: Mapping[Cell, CellJudgement]) -> dict[str, dict[str, float]]:
    """By target, for all rows set aside: median and 90th percentile error, share within 10 %, and number of rows."""
    found = {}
    for target in sorted({target for target, _ in judgements}):
        mine = [one for cell, one in judgements.items() if cell[0] == target]
        measured = np.concatenate([one.measured_ns for one in mine])
        predicted = np.concatenate([one.predicted_ns for one in mine])
        if len(measured):
            values = {name: METRICS[name](measured, predicted) for name in CURVE_METRICS}
            found[target] = {**values, "n": float(len(measured))}
    return found
