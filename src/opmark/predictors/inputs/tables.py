"""Rows of a release as one table per kind: features, both labels and their variation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import OK, USABLE, Measurement
from opmark.kinds import KINDS
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Hardware, Inputs, features

_UNKNOWN = float("nan")
# The usual error of a prediction from similar kernels.
_MODEL_ERROR = 0.05
# A label with a larger error says nothing about the others.
_MOST_ERROR = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """Both labels in nanoseconds, one entry per kernel.

    `error` are the standard errors of the hot labels, as fractions, NaN where unknown; None where no label has one.
    """

    hot_ns: Floats
    rotated_ns: Floats
    error: Floats | None = None

    def take(self, rows: Any) -> "Latencies":
        """Select rows by indices or by a mask."""
        error = None if self.error is None else self.error[rows]
        return Latencies(hot_ns=self.hot_ns[rows], rotated_ns=self.rotated_ns[rows], error=error)

    @property
    def weight(self) -> Floats | None:
        """The weight of each row in training; None where all rows count alike.

        It is the share of a model's usual variance in that variance and the label's own.
        """
        if self.error is None:
            return None
        weight: Floats = _MODEL_ERROR**2 / (_MODEL_ERROR**2 + np.nan_to_num(self.error) ** 2)
        return weight

    @property
    def label_error(self) -> float | None:
        """The root mean square of the standard errors; None where none is known."""
        known = self.error[np.isfinite(self.error)] if self.error is not None else np.empty(0)
        return float(np.sqrt(np.mean(np.minimum(known, _MOST_ERROR) ** 2))) if len(known) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The usable rows of one kind. Unknown rotated labels and variations between processes are NaN."""

    inputs: Inputs
    labels: Latencies
    variation: Floats

    def take(self, rows: Any) -> "Table":
        """Select rows by indices or by a mask."""
        return Table(inputs=self.inputs.take(rows), labels=self.labels.take(rows), variation=self.variation[rows])


def tables(measurements: Sequence[Measurement], hardware: Hardware) -> dict[str, Table]:
    """Collect the usable rows by kind, ordered by kernel key.

    Of a kernel that was measured twice, a row with the status `ok` is preferred.
    """
    by_kind: dict[str, dict[str, Measurement]] = {}
    for row in measurements:
        if row.status in USABLE:
            rows = by_kind.setdefault(row.kernel.kind, {})
            held = rows.get(row.kernel.key)
            if held is None or (held.status != OK and row.status == OK):
                rows[row.kernel.key] = row
    return {kind: _table([rows[key] for key in sorted(rows)], hardware) for kind, rows in sorted(by_kind.items())}


def kernels_of(found: Sequence[Table]) -> list[Kernel]:
    """List the kernels of several tables, table after table."""
    return [kernel for table in found for kernel in table.inputs.kernels]


def measured_kernels(measurements: Sequence[Measurement]) -> dict[Kernel, tuple[float, float]]:
    """Map every kernel with a usable row to its (hot, rotated) latency; rotated is NaN where it was not measured."""
    return {
        row.kernel: (row.latency_hot_ns, row.latency_rotated_ns or _UNKNOWN)
        for row in sorted(measurements, key=lambda row: row.status == OK)
        if row.status in USABLE and row.latency_hot_ns
    }


def by_kernel(kernels: Sequence[Kernel], labels: Latencies) -> dict[Kernel, tuple[float, float]]:
    """Map each kernel to its (hot, rotated) latency."""
    return dict(zip(kernels, zip(labels.hot_ns.tolist(), labels.rotated_ns.tolist(), strict=True), strict=True))


def _table(rows: Sequence[Measurement], hardware: Hardware) -> Table:
    return Table(
        inputs=features([row.kernel for row in rows], KINDS.load(rows[0].kernel.kind), hardware),
        labels=Latencies(
            hot_ns=np.array([row.latency_hot_ns for row in rows], dtype=np.float64),
            rotated_ns=np.array([row.latency_rotated_ns or _UNKNOWN for row in rows], dtype=np.float64),
            error=_errors([row.standard_error_hot for row in rows]),
        ),
        variation=np.array(
            [_UNKNOWN if row.between_process_variation is None else row.between_process_variation for row in rows]
        ),
    )


def _errors(found: Sequence[float | None]) -> Floats | None:
    if all(error is None for error in found):
        return None
    return np.array([_UNKNOWN if error is None else error for error in found], dtype=np.float64)
