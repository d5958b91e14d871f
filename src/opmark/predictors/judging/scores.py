"""Scores of estimators by split and metric, beside the noise floor of the measurement."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from opmark.core.errors import OpMarkError
from opmark.core.measurements.measurement import SEALED
from opmark.core.parallel.task_map import InTurn, MapProgress, TaskMap
from opmark.predictors.inputs.arrays import Floats, Integers, single_thread
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.tables import Table, tables
from opmark.predictors.judging.evidence import Evidence, Judged, joined
from opmark.predictors.judging.families import family_intervals, relatives
from opmark.predictors.judging.finished_parts import FinishedParts, JudgedPart, parts_of
from opmark.predictors.judging.networks import (
    COMPOSITION,
    KERNEL_SUM,
    OF_CLASS,
    OP_COUNTS,
    class_errors,
    judge_networks,
    judge_op_counts,
    split_errors,
)
from opmark.predictors.judging.noise_floors import kernel_noise, network_noise_floor, noise_floor
from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SPLIT_NAMES, split_folds
from opmark.predictors.learners.estimator import Estimator
from opmark.predictors.model.intervals import calibrate, outside, training_range
from opmark.predictors.model.metrics import all_metrics, coverage

# Kinds with fewer rows to learn from are not judged.
LEAST_TRAINING_ROWS = 8
COVERAGE90 = "coverage90"
# An order of thousands of rows takes a second for all draws, and nobody doubts it.
_WITHOUT_INTERVAL = "kendall-tau"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One cell of the table. `noise_floor` is the metric of one measurement against another, None where unknown.

    `low` and `high` bound the 90 % interval of `value` if the `families` were drawn again: families of networks, shape
    groups of kernels. The noise floor of whole networks comes from all networks of the target that were measured again,
    else from the standard errors of their labels.

    Metrics of `networks-unseen` compare with the measured network; `kernel-sum-…` compares with the sum of measured
    kernels, and `composition-…` compares that sum with the network. `…@CLASS` covers one class of networks.
    """

    target: str
    estimator: str
    split: str
    metric: str
    value: float
    n: int
    noise_floor: float | None
    low: float | None = None
    high: float | None = None
    families: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetScores:
    """One target's scores, and the rows behind them by (estimator, split).

    `relatives` maps unseen families of networks to related families that constants were fitted on.
    `left_out` names measured networks whose graph cannot be had here.
    """

    target: str
    scores: tuple[Score, ...]
    judged: Mapping[tuple[str, str], Judged]
    relatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def evaluate(
    evidence: Evidence,
    *,
    estimators: Sequence[str] = ("lightgbm",),
    splits: Sequence[str] = SPLIT_NAMES,
    progress: Callable[[MapProgress], None] = lambda _: None,
    place: TaskMap | None = None,
    finished: FinishedParts | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> TargetScores:
    """Compute every metric of every estimator on every split for which there are rows.

    Whole networks are also predicted by the baseline without kernels, `op-counts`. Intervals are scored (`coverage90`)
    for estimators whose fit calibrates them. Each estimator on each kind of a split is a task of `place` (default: one
    after another, here). Parts that are `finished` are not judged again, and others are kept there as they end. Raises
    `UnknownNameError`.
    """
    scores: list[Score] = []
    rows: dict[tuple[str, str], Judged] = {}
    parts = parts_of(evidence, estimators, splits)
    judged = _judged_parts(
        evidence, parts, place=place or InTurn(), finished=finished, progress=progress, notice=notice
    )
    for name, split in [(name, split) for name in estimators for split in splits]:
        own = [judged[part] for part in parts if (part.estimator, part.split) == (name, split)]
        found = joined([one for one in own if one is not None])
        if found is not None:
            rows[name, split] = found
            scores += scores_of(evidence, name, split, found)
    if NETWORKS_UNSEEN in splits and (counted := judge_op_counts(evidence)) is not None:
        rows[OP_COUNTS, NETWORKS_UNSEEN] = counted
        scores += scores_of(evidence, OP_COUNTS, NETWORKS_UNSEEN, counted)
    unseen = [one.family for one in evidence.unseen] if NETWORKS_UNSEEN in splits else []
    trained = [one.family for one in evidence.networks if one.role == "training"]
    return TargetScores(
        target=evidence.target.name,
        scores=tuple(scores),
        judged=rows,
        relatives=relatives(unseen, trained),
        left_out=evidence.without_graph if NETWORKS_UNSEEN in splits else (),
    )


def _judged_parts(
    evidence: Evidence,
    parts: Sequence[JudgedPart],
    *,
    place: TaskMap,
    finished: FinishedParts | None,
    progress: Callable[[MapProgress], None],
    notice: Callable[[str], None],
) -> dict[JudgedPart, Judged | None]:
    """Judge the parts that are not finished; keep each of them as it ends."""
    found = finished.known(parts) if finished else {}
    if finished and found:
        notice(
            f"{evidence.target.name}: {len(found):,} of {len(parts):,} parts were judged before and are taken from "
            f"{finished.folder}"
        )
    left = [part for part in parts if part not in found]
    work_left, work_done, begun = sum(part.work for part in left), 0.0, time.monotonic()
    progress(MapProgress(done=len(found), total=len(parts)))
    for number, judged in place.run(_judge_part, left, shared=evidence):
        part = left[number]
        found[part] = judged
        if finished:
            finished = _kept(finished, part, judged, notice)
        work_done += part.work
        left_s = (time.monotonic() - begun) * (work_left / work_done - 1)
        progress(MapProgress(done=len(found), total=len(parts), left_s=max(0.0, left_s)))
    return found


def _kept(
    finished: FinishedParts, part: JudgedPart, judged: Judged | None, notice: Callable[[str], None]
) -> FinishedParts | None:
    """Keep a part; None where nothing can be kept, for example in a folder that cannot be written."""
    try:
        finished.keep(part, judged)
    except OpMarkError as error:
        notice(f"an interrupted evaluation will begin again: {error}")
        return None
    return finished


def _judge_part(evidence: Evidence, part: JudgedPart) -> Judged | None:
    with single_thread():
        if part.split == NETWORKS_UNSEEN:
            return judge_networks(evidence, part.estimator)
        sides = split_sides(evidence, part.split, every_fold=True, kind=part.kind)
        return judge_sides(sides, evidence.learner(part.estimator))


def judge(evidence: Evidence, estimator: str, split: str) -> Judged | None:
    """Fit each kind on one side of every fold of `split` and predict the other; None if no kind has two sides."""
    return judge_sides(split_sides(evidence, split, every_fold=True), evidence.learner(estimator))


def split_sides(
    evidence: Evidence, split: str, *, every_fold: bool = False, kind: str = ""
) -> list[tuple[str, Table, Table]]:
    """Split each kind into a table to learn from and one that judges; kinds with too few rows are left out.

    Of a split with several folds, only the first judges, unless `every_fold` is wanted. A `kind` selects one.
    """
    context = evidence.context
    rows = [row for row in evidence.measurements if kind in ("", row.kernel.kind)]
    sides = []
    for name, table in tables(rows, evidence.hardware).items():
        folds = split_folds(split, table.inputs, context)
        sides += [
            (name, table.take(~judging), table.take(judging))
            for judging in (folds if every_fold else folds[:1])
            if judging.any() and int((~judging).sum()) >= LEAST_TRAINING_ROWS
        ]
    return sides


def judge_sides(sides: Sequence[tuple[str, Table, Table]], learner: Estimator) -> Judged | None:
    """Fit `learner` to the first table of each kind and predict the second; None without any kind."""
    kinds: list[str] = []
    families: list[str] = []
    columns: list[Floats] = []
    calibrated = True
    for kind, training, test in sides:
        # only hot labels are judged, and learning the rotated ones would take half of the time
        labels = replace(training.labels, rotated_ns=np.full(len(training.inputs), np.nan))
        fitted = learner.fit(training.inputs, labels)
        predicted = fitted.predict(test.inputs).hot_ns
        width = np.zeros_like(predicted)
        if fitted.held_out is None:
            calibrated = False
        else:
            errors, _ = calibrate(learner, fitted, training.inputs, labels)
            beyond = outside(test.inputs, training_range(training.inputs))
            width = np.where(beyond, errors.extrapolated_half_width, errors.half_width)
        kinds += [kind] * len(predicted)
        families += shape_groups(test.inputs.kernels)
        columns.append(np.column_stack([test.labels.hot_ns, predicted, *kernel_noise(test), width]))
    if not columns:
        return None
    measured, predicted, variation, deviation, width = np.vstack(columns).T
    return Judged(
        kinds=tuple(kinds),
        families=tuple(families),
        measured_ns=measured,
        predicted_ns=predicted,
        variation=variation,
        deviation=deviation,
        low_ns=predicted * np.exp(-width) if calibrated else None,
        high_ns=predicted * np.exp(width) if calibrated else None,
    )


def scores_of(evidence: Evidence, estimator: str, split: str, judged: Judged) -> list[Score]:
    """Compute every metric of `judged` rows, with intervals over families and the noise floor of `evidence`."""
    if split in {NETWORKS_UNSEEN, SEALED}:
        floor = network_noise_floor(evidence)
    else:
        floor = noise_floor(judged.measured_ns, judged.variation, judged.deviation)
    count = len(judged.kinds)
    values = {name: (value, count) for name, value in _values(judged, np.arange(count)).items()}
    values |= split_errors(judged) | class_errors(judged)
    families = judged.families or judged.kinds
    intervals = family_intervals(families, lambda rows: _values(judged, rows, but=_WITHOUT_INTERVAL))
    known = len(set(families))
    return [
        Score(
            target=evidence.target.name,
            estimator=estimator,
            split=split,
            metric=metric,
            value=value,
            n=n,
            noise_floor=floor.get(_own_metric(metric)),
            low=intervals[metric][0] if metric in intervals else None,
            high=intervals[metric][1] if metric in intervals else None,
            families=known if metric in intervals else None,
        )
        for metric, (value, n) in values.items()
    ]


def _values(judged: Judged, rows: Integers, *, but: str = "") -> dict[str, float]:
    """Compute the metrics of some rows, that of intervals included, without the one called `but`."""
    measured = judged.measured_ns[rows]
    values = all_metrics(measured, judged.predicted_ns[rows], but=but)
    if judged.low_ns is not None and judged.high_ns is not None:
        values[COVERAGE90] = coverage(measured, judged.low_ns[rows], judged.high_ns[rows])
    return values


def _own_metric(metric: str) -> str:
    """Name the metric of `acc10@float32` or `composition-acc10`, which share the floor of whole networks."""
    name = metric.partition(OF_CLASS)[0]
    for half in (KERNEL_SUM, COMPOSITION):
        name = name.removeprefix(f"{half}-")
    return name
