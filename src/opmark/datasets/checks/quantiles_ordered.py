"""Quantiles come 21 at a time, ascending, and the label lies within them."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from opmark.core.measurement import QUANTILES
from opmark.datasets.check import ERROR, KERNEL_TABLES, NETWORK_TABLES, WARNING, Check, Finding, Tables

# Overhead is taken off the hot label and may be taken off after its quantiles were, so that the label may lie below.
_PAIRS = (
    (KERNEL_TABLES, "hot_quantiles_ns", "latency_hot_ns"),
    (KERNEL_TABLES, "rotated_quantiles_ns", "latency_rotated_ns"),
    (NETWORK_TABLES, "quantiles_ns", "latency_ns"),
)


def findings(tables: Tables) -> Iterator[Finding]:
    """Quantiles in the wrong number or order (errors), labels above all of their quantiles (warnings)."""
    for names, column, label in _PAIRS:
        for file, number, row in tables.rows(*names):
            level, message = _problem(row, column, label)
            if message:
                yield Finding(check=CHECK.name, level=level, file=file, row=number, column=column, message=message)


def _problem(row: dict[str, Any], column: str, label: str) -> tuple[str, str]:
    quantiles, latency_ns = row[column], row[label]
    if not quantiles:
        return ERROR, ""
    if len(quantiles) != len(QUANTILES):
        return ERROR, f"{len(quantiles)} quantiles, expected {len(QUANTILES)}"
    if any(value is None or math.isnan(value) for value in quantiles):
        return ERROR, ""  # latencies-positive says so
    for index, (low, high) in enumerate(itertools.pairwise(quantiles)):
        if high < low:
            return ERROR, f"quantile {index + 1} is {high}, below {low} before it"
    if latency_ns is not None and latency_ns > quantiles[-1] * 1.0001:
        return WARNING, f"{label} is {latency_ns}, above its largest sample {quantiles[-1]}"
    return ERROR, ""


CHECK = Check(
    name="quantiles-ordered",
    title="Quantiles are ordered",
    description="A row has no quantiles or 21 of them, ascending; a label above its largest sample is flagged.",
    findings=findings,
)
