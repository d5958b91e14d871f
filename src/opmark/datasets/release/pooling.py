"""One label from all trials of a kernel, which different journals tell (decision 0072)."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opmark.core.measurements.measurement import OK, USABLE, status_of
from opmark.datasets.format.columns import KERNEL_REPEATS

Row = Mapping[str, Any]

# Every label and its standard error, the one that decides the status first.
_LABELS = (
    ("latency_hot_ns", "standard_error_hot"),
    ("latency_rotated_ns", "standard_error_rotated"),
)
# Calm labels of two hours differ by this much more than their standard errors say.
_BETWEEN_HOURS = 0.005

POOLED_COLUMNS = (*KERNEL_REPEATS.identity, "status", *(name for label in _LABELS for name in label))
"""The columns of a repeat that `pooled` reads."""


def pooled(rows: Iterable[Row], repeats: Iterable[Row]) -> list[Row]:
    """The rows of kernels, with the label of all of their usable trials and its standard error and status.

    Journal, quantiles and counts stay those of the row. Rows without repeats, standard errors or latency do not change.
    """
    others: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for repeat in repeats:
        if repeat["status"] in USABLE:
            others[_identity(repeat)].append(repeat)
    return [_pooled(row, others.get(_identity(row), ())) for row in rows]


def pooled_label(latencies_ns: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """The latency in ns, and its standard error as a fraction of it, from labels of different hours with their errors.

    The mean of the logarithms has the inverse variances as weights. Where labels lie farther apart than their errors
    say, its error grows by that factor (Particle Data Group, Review of Particle Physics 2022, section 5.2.2).
    """
    weights = [1.0 / (error**2 + _BETWEEN_HOURS**2) for error in errors]
    logarithms = [math.log(ns) for ns in latencies_ns]
    total = sum(weights)
    mean = sum(weight * value for weight, value in zip(weights, logarithms, strict=True)) / total
    squares = sum(weight * (value - mean) ** 2 for weight, value in zip(weights, logarithms, strict=True))
    scale = max(1.0, squares / max(len(weights) - 1, 1))
    return math.exp(mean), math.sqrt(scale / total)


def _pooled(row: Row, repeats: Sequence[Row]) -> Row:
    if not repeats or row["status"] not in USABLE:
        return row
    changed = dict(row)
    for latency, name in _LABELS:
        known = [(trial[latency], trial[name]) for trial in (row, *repeats) if trial[latency] and trial[name]]
        if row[name] and len(known) > 1:
            changed[latency], changed[name] = pooled_label(*zip(*known, strict=True))
    _, decisive = _LABELS[0]
    error = changed[decisive]
    if error != row[decisive]:
        changed["status"] = status_of(error)
        changed["reason"] = "" if changed["status"] == OK else f"standard error of {error:.1%} over all trials"
    return changed


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KERNEL_REPEATS.identity)
