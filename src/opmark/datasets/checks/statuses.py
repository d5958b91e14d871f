"""A row's status is one of four, and agrees with the rest of the row."""

from collections.abc import Iterator
from typing import Any

from opmark.core.measurements.measurement import ROLES, STATUSES, TRAINING, USABLE, status_of
from opmark.datasets.validation.check import ERROR, KERNEL_TABLES, NETWORK_TABLES, Check, Finding, ReleaseTables


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find usable rows without a latency, and unusable rows with one or without a reason."""
    for names, label, error in (
        (KERNEL_TABLES, "latency_hot_ns", "standard_error_hot"),
        (NETWORK_TABLES, "latency_ns", "standard_error"),
    ):
        for file, number, row in tables.rows(*names, columns=("status", "reason", "role", label, error)):
            for column, message in _problems(row, label, error):
                yield Finding(check=CHECK.name, level=ERROR, file=file, row=number, column=column, message=message)


def _problems(row: dict[str, Any], label: str, error: str) -> Iterator[tuple[str, str]]:
    status = row["status"]
    if status not in STATUSES:
        yield "status", f"unknown status {status!r}"
        return
    if status in USABLE and row[label] is None:
        yield label, f"the row is {status} and has no latency"
    known = row.get(error)
    if status in USABLE and known is not None and status != status_of(known):
        yield error, f"the row is {status}, and a standard error of {known:.1%} makes it {status_of(known)}"
    if status not in USABLE and row[label] is not None:
        yield label, f"the row is {status} and has a latency"
    if status not in USABLE and not row["reason"]:
        yield "reason", f"the row is {status} and does not say why"
    if row.get("role", TRAINING) not in ROLES:
        yield "role", f"unknown role {row['role']!r}"


CHECK = Check(
    name="statuses",
    title="Statuses agree with the rows",
    description="A status is known and follows from the standard error; usable rows have a latency, others a reason.",
    findings=findings,
    essential=True,
)
