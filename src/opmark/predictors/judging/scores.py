"""Scores of estimators by split and metric, beside the noise floor of the measurement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opmark.core.parallel.task_map import InTurn, MapProgress, TaskMap
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.tables import Table, tables
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.judging.networks import (
    OP_COUNTS,
    class_errors,
    judge_networks,
    judge_op_counts,
    split_errors,
)
from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SPLIT_NAMES, split_rows
from opmark.predictors.model.intervals import calibrate, outside, training_range
from opmark.predictors.model.metrics import all_metrics, coverage

# Kinds with fewer rows to learn from are not judged.
LEAST_TRAINING_ROWS = 8
COVERAGE90 = "coverage90"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One cell of the table. `noise_floor` is the metric of one measurement against another, None where unknown.

    The noise floor of whole networks comes from all networks of the target that were measured again.

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetScores:
    """One target's scores, and the rows behind them by (estimator, split)."""

    target: str
    scores: tuple[Score, ...]
    judged: Mapping[tuple[str, str], Judged]


def evaluate(
    evidence: Evidence,
    *,
    estimators: Sequence[str] = ("lightgbm",),
    splits: Sequence[str] = SPLIT_NAMES,
    progress: Callable[[MapProgress], None] = lambda _: None,
    place: TaskMap | None = None,
) -> TargetScores:
    """Compute every metric of every estimator on every split for which there are rows.

    Whole networks are also predicted by the baseline without kernels, `op-counts`. Intervals are scored (`coverage90`)
    for estimators whose fit calibrates them. Each estimator on each split is a task of `place` (default: one after
    another, here). Raises `UnknownNameError`.
    """
    scores: list[Score] = []
    rows: dict[tuple[str, str], Judged] = {}
    cells = [(name, split) for name in estimators for split in splits]
    judged = (place or InTurn()).in_order(_judge_cell, cells, shared=evidence, progress=progress)
    for (name, split), found in zip(cells, judged, strict=True):
        if found is not None:
            rows[name, split] = found
            scores += _scores(evidence, name, split, found)
    if NETWORKS_UNSEEN in splits and (counted := judge_op_counts(evidence)) is not None:
        rows[OP_COUNTS, NETWORKS_UNSEEN] = counted
        scores += _scores(evidence, OP_COUNTS, NETWORKS_UNSEEN, counted)
    return TargetScores(target=evidence.target.name, scores=tuple(scores), judged=rows)


def _judge_cell(evidence: Evidence, cell: tuple[str, str]) -> Judged | None:
    name, split = cell
    with single_thread():
        return judge_networks(evidence, name) if split == NETWORKS_UNSEEN else judge(evidence, name, split)


def judge(evidence: Evidence, estimator: str, split: str) -> Judged | None:
    """Fit each kind on one side of `split` and predict the other; None if no kind has two sides."""
    return judge_sides(split_sides(evidence, split), estimator)


def split_sides(evidence: Evidence, split: str) -> list[tuple[str, Table, Table]]:
    """Split each kind into a table to learn from and one that judges; kinds with too few rows are left out."""
    context = evidence.context
    sides = []
    for kind, table in tables(evidence.measurements, evidence.hardware).items():
        judging = split_rows(split, table.inputs, context)
        if judging.any() and int((~judging).sum()) >= LEAST_TRAINING_ROWS:
            sides.append((kind, table.take(~judging), table.take(judging)))
    return sides


def judge_sides(sides: Sequence[tuple[str, Table, Table]], estimator: str) -> Judged | None:
    """Fit `estimator` to the first table of each kind and predict the second; None without any kind."""
    learner = ESTIMATORS.load(estimator)
    kinds: list[str] = []
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
        columns.append(np.column_stack([test.labels.hot_ns, predicted, test.variation, width]))
    if not columns:
        return None
    measured, predicted, variation, width = np.vstack(columns).T
    return Judged(
        kinds=tuple(kinds),
        measured_ns=measured,
        predicted_ns=predicted,
        variation=variation,
        low_ns=predicted * np.exp(-width) if calibrated else None,
        high_ns=predicted * np.exp(width) if calibrated else None,
    )


def noise_floor(measured_ns: Floats, variation: Floats) -> dict[str, float | None]:
    """Compute every metric of a second measurement that differs from the first by the variation between processes.

    The second is longer and shorter in turn, so that there is no bias. Empty where no variation is known.
    """
    known = np.isfinite(variation)
    if not known.any():
        return {}
    first = measured_ns[known]
    sign = np.where(np.arange(len(first)) % 2 == 0, 1.0, -1.0)
    return dict(all_metrics(first, first * np.exp(sign * variation[known])))


def network_noise_floor(evidence: Evidence) -> dict[str, float | None]:
    """Compute every metric of repeated measurements of networks, training ones included; empty without repeats."""
    pairs = [(one.latency_ns, again.latency_ns) for one, again in evidence.network_retests]
    first, second = np.array([pair for pair in pairs if None not in pair], dtype=np.float64).reshape(-1, 2).T
    return dict(all_metrics(first, second)) if len(first) else {}


def _scores(evidence: Evidence, estimator: str, split: str, judged: Judged) -> list[Score]:
    networks = split == NETWORKS_UNSEEN
    floor = network_noise_floor(evidence) if networks else noise_floor(judged.measured_ns, judged.variation)
    count = len(judged.kinds)
    values = {name: (value, count) for name, value in all_metrics(judged.measured_ns, judged.predicted_ns).items()}
    if judged.low_ns is not None and judged.high_ns is not None:
        values[COVERAGE90] = (coverage(judged.measured_ns, judged.low_ns, judged.high_ns), count)
    values |= split_errors(judged) | class_errors(judged)
    return [
        Score(
            target=evidence.target.name,
            estimator=estimator,
            split=split,
            metric=metric,
            value=value,
            n=n,
            noise_floor=floor.get(metric),
        )
        for metric, (value, n) in values.items()
    ]
