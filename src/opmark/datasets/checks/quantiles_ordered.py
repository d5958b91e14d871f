"""Every row has 21 ascending quantiles or none, and its label lies within them."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from opmark.core.measurements.measurement import QUANTILES
from opmark.datasets.validation.check import ERROR, KERNEL_TABLES, NETWORK_TABLES, Check, Finding, ReleaseTables

# Labels and quantiles are rounded separately.
_TOLERANCE = 1e-6
# The most by which a machine's state can move a label beyond its samples, and the columns of standard errors.
_STATE_ROOM = 1.0
_ERROR_OF = {
    "latency_hot_ns": "standard_error_hot",
    "latency_rotated_ns": "standard_error_rotated",
    "latency_ns": "standard_error",
}
_PAIRS = (
    (KERNEL_TABLES, "hot_quantiles_ns", "latency_hot_ns"),
    (KERNEL_TABLES, "rotated_quantiles_ns", "latency_rotated_ns"),
    (NETWORK_TABLES, "quantiles_ns", "latency_ns"),
)


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find quantiles in the wrong number or order, and labels outside their samples."""
    for names, column, label in _PAIRS:
        for file, number, row in tables.rows(*names):
            message = _problem(row, column, label)
            if message:
                yield Finding(check=CHECK.name, level=ERROR, file=file, row=number, column=column, message=message)


def _problem(row: dict[str, Any], column: str, label: str) -> str:
    quantiles, latency_ns = row[column], row[label]
    if not quantiles:
        return ""
    if len(quantiles) != len(QUANTILES):
        return f"{len(quantiles)} quantiles, expected {len(QUANTILES)}"
    if any(value is None or math.isnan(value) for value in quantiles):
        return ""  # latencies-positive says so
    for index, (low, high) in enumerate(itertools.pairwise(quantiles)):
        if high < low:
            return f"quantile {index + 1} is {high}, below {low} before it"
    # A label with a standard error is told at one state, not at that of its samples.
    error = row.get(_ERROR_OF[label])
    room = 1.0 + (_TOLERANCE if error is None or math.isnan(error) else _STATE_ROOM)
    low, high = quantiles[0] / room, quantiles[-1] * room
    if latency_ns is not None and not low <= latency_ns <= high:
        return f"{label} is {latency_ns}, outside its samples from {quantiles[0]} to {quantiles[-1]}"
    return ""


CHECK = Check(
    name="quantiles-ordered",
    title="Quantiles are ordered",
    description="A row has no quantiles or 21 of them, ascending. The label lies within them, or near them if it has a"
    " standard error.",
    findings=findings,
)
