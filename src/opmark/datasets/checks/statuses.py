"""A row's status is one of four, and agrees with the rest of the row."""

from collections.abc import Iterator
from typing import Any

from opmark.core.measurements.measurement import STATUSES, USABLE
from opmark.datasets.validation.check import ERROR, KERNEL_TABLES, NETWORK_TABLES, Check, Finding, ReleaseTables

_ROLES = ("training", "held-out")


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find usable rows without a latency, and unusable rows with one or without a reason."""
    for names, label in ((KERNEL_TABLES, "latency_hot_ns"), (NETWORK_TABLES, "latency_ns")):
        for file, number, row in tables.rows(*names):
            for column, message in _problems(row, label):
                yield Finding(check=CHECK.name, level=ERROR, file=file, row=number, column=column, message=message)


def _problems(row: dict[str, Any], label: str) -> Iterator[tuple[str, str]]:
    status = row["status"]
    if status not in STATUSES:
        yield "status", f"unknown status {status!r}"
        return
    if status in USABLE and row[label] is None:
        yield label, f"the row is {status} and has no latency"
    if status not in USABLE and row[label] is not None:
        yield label, f"the row is {status} and has a latency"
    if status not in USABLE and not row["reason"]:
        yield "reason", f"the row is {status} and does not say why"
    if row.get("role", _ROLES[0]) not in _ROLES:
        yield "role", f"unknown role {row['role']!r}"


CHECK = Check(
    name="statuses",
    title="Statuses agree with the rows",
    description="A status is ok, low_quality, skipped or failed; usable rows have a latency, others a reason.",
    findings=findings,
    essential=True,
)
