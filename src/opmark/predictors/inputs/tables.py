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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """Both labels in nanoseconds, one entry per kernel."""

    hot_ns: Floats
    rotated_ns: Floats

    def take(self, rows: Any) -> "Latencies":
        """Select rows by indices or by a mask."""
        return Latencies(hot_ns=self.hot_ns[rows], rotated_ns=self.rotated_ns[rows])


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
        ),
        variation=np.array(
            [_UNKNOWN if row.between_process_variation is None else row.between_process_variation for row in rows]
        ),
    )
