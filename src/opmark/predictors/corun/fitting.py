"""Fit the slowdown of co-running kernels, and judge it on pairs of kernels that were set aside."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.corun import CorunMeasurement
from opmark.predictors.corun.slowdown import FEATURES, CorunJudgement, CorunModel, corun_features, exponential

# One pair of kernels in four is set aside.
_HELD_OUT = 4
# A measured factor is not known better, and no pair counts more.
_LEAST_ERROR = 0.01
# How far weights may lie from the start, in deviations of a residual.
_RIDGE = 0.3
_LEAST_TRIALS = 30


def held_out(row: CorunMeasurement) -> bool:
    """True for the pairs of kernels that judge the model; their trial's name decides."""
    return row.beside is not None and sha256(row.trial.encode()).digest()[0] % _HELD_OUT == 0


def fitted_slowdown(rows: Sequence[CorunMeasurement], *, device: str, target: str, level2_bytes: int) -> CorunModel:
    """Fit the model of one target, judged on pairs that it was not fitted on, then fitted on all.

    Raises `NothingSelectedError` with too few rows.
    """
    own = [row for row in rows if row.target == target and row.factor is not None]
    learned, kept = [row for row in own if not held_out(row)], [row for row in own if held_out(row)]
    if len(learned) < _LEAST_TRIALS:
        raise NothingSelectedError(
            f"{len(learned)} co-runs of {target} are too few to learn from: {_LEAST_TRIALS} are needed",
            hint="run `opmark bench corun` longer",
        )
    judged = _fitted(learned, device, target, level2_bytes)
    judgement = judgement_of(judged, kept) if kept else None
    return replace(_fitted(own, device, target, level2_bytes), judgement=judgement)


def judgement_of(model: CorunModel, rows: Sequence[CorunMeasurement]) -> CorunJudgement:
    """The errors of `model` on `rows`, beside those of two simpler predictions."""
    measured = np.array([row.factor for row in rows])
    errors = np.abs(model.predicted(rows) / measured - 1)
    return CorunJudgement(
        pairs=len(rows),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        no_slowdown_error=float(np.median(np.abs(1 / measured - 1))),
        constant_error=float(np.median(np.abs(np.median(measured) / measured - 1))),
        noise=float(np.median([row.standard_error or 0.0 for row in rows])),
        median_factor=float(np.median(measured)),
        largest_factor=float(measured.max()),
    )


def _fitted(rows: Sequence[CorunMeasurement], device: str, target: str, level2_bytes: int) -> CorunModel:
    from scipy.optimize import least_squares

    names = sorted({row.neighbour for row in rows if row.beside is None})
    stressor = np.array([names.index(row.neighbour) if row.beside is None else -1 for row in rows])
    victims = corun_features([row.kernel for row in rows], level2_bytes)
    others = corun_features([row.beside or row.kernel for row in rows], level2_bytes)
    measured = np.log(np.array([row.factor for row in rows], dtype=float))
    error = np.maximum(np.array([row.standard_error for row in rows], dtype=float), _LEAST_ERROR)
    start = np.concatenate([[-1.0], np.zeros(FEATURES - 1), [-1.0], np.zeros(FEATURES - 1), np.full(len(names), -1.0)])

    def residuals(weights: Any) -> Any:
        sensitivity = exponential(victims, weights[:FEATURES])
        of_stressors = np.exp(np.clip(weights[2 * FEATURES :], -12.0, 2.0))
        pressure = exponential(others, weights[FEATURES : 2 * FEATURES])
        if names:
            pressure = np.where(stressor >= 0, of_stressors[np.maximum(stressor, 0)], pressure)
        return np.concatenate([(sensitivity * pressure - measured) / error, _RIDGE * (weights - start)])

    weights = least_squares(residuals, start, loss="soft_l1").x.tolist()
    return CorunModel(
        device=device,
        target=target,
        level2_bytes=level2_bytes,
        sensitivity=tuple(round(value, 6) for value in weights[:FEATURES]),
        pressure=tuple(round(value, 6) for value in weights[FEATURES : 2 * FEATURES]),
        stressors={
            name: float(f"{np.exp(value):.6g}") for name, value in zip(names, weights[2 * FEATURES :], strict=True)
        },
        trials=len(rows),
    )
