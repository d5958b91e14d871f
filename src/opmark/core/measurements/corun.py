"""The slowdown of a kernel beside a neighbour, from its turns."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import OK
from opmark.core.measurements.records import CorunTrial, CorunTurns, Done, Record

# A residual beyond this many deviations counts as much as one at this distance (Huber).
_HUBER = 1.5
_ROUNDS = 5
# What a sentinel cannot see changes between two samples of a turn.
_LEAST_ERROR = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunMeasurement:
    """A kernel on a target beside `neighbour`, a stressor's name or a kernel's key; then `beside` is that kernel.

    `factor` is its time beside the neighbour over its time alone, `standard_error` the error of the factor's logarithm,
    and `alone_ns` the time of one call alone. Without a measurement, `reason` says why and `factor` is None.
    """

    trial: str
    target: str
    kernel: Kernel
    neighbour: str
    beside: Kernel | None = None
    factor: float | None = None
    standard_error: float | None = None
    alone_ns: float | None = None
    turns: int = 0
    reason: str = ""


def corun_measurements(records: Iterable[Record]) -> list[CorunMeasurement]:
    """One row per finished trial, in the order of the journal."""
    trials: dict[str, CorunTrial] = {}
    turns: dict[str, list[CorunTurns]] = defaultdict(list)
    done: dict[str, Done] = {}
    for record in records:
        if isinstance(record, CorunTrial):
            trials[record.trial] = record
        elif isinstance(record, CorunTurns):
            turns[record.trial].append(record)
        elif isinstance(record, Done):
            done[record.trial] = record
    return [_folded(trial, done[key], turns[key]) for key, trial in trials.items() if key in done]


def _folded(trial: CorunTrial, done: Done, turns: Iterable[CorunTurns]) -> CorunMeasurement:
    common: dict[str, Any] = {"trial": trial.trial, "target": trial.target, "kernel": trial.kernel}
    pairs = [
        (alone, beside, flags == "1" == others)
        for one in turns
        for alone, beside, flags, others in zip(
            one.alone_ns, one.beside_ns, one.alone_clean, one.beside_clean, strict=True
        )
    ]
    chosen = [(alone, beside) for alone, beside, clean in pairs if clean] or [pair[:2] for pair in pairs]
    if done.status != OK or not chosen:
        return CorunMeasurement(
            **common, neighbour=trial.neighbour, beside=trial.beside, reason=done.reason or "no turns"
        )
    alone, beside = (np.log(np.array(column, dtype=float)) for column in zip(*chosen, strict=True))
    mean, error = robust_mean(beside - alone)
    return CorunMeasurement(
        **common,
        neighbour=trial.neighbour,
        beside=trial.beside,
        factor=float(np.exp(mean)),
        standard_error=error,
        alone_ns=float(np.exp(np.median(alone))),
        turns=len(chosen),
    )


def robust_mean(values: Any) -> tuple[float, float]:
    """Huber's mean of `values` and its standard error."""
    centre = float(np.median(values))
    deviation = max(1.4826 * float(np.median(np.abs(values - centre))), _LEAST_ERROR)
    weight = np.ones(len(values))
    for _ in range(_ROUNDS):
        weight = np.minimum(1.0, _HUBER / np.maximum(np.abs(values - centre) / deviation, 1e-12))
        centre = float((weight * values).sum() / weight.sum())
    return centre, max(deviation / float(np.sqrt(weight.sum())), _LEAST_ERROR)
