"""FLOPs and bytes of a row equal those that its kind counts."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from opmark.core.canonical import plain
from opmark.core.errors import OpMarkError
from opmark.datasets.format.columns import kernel_of
from opmark.datasets.validation.check import ERROR, KERNEL_TABLES, Check, Finding, ReleaseTables
from opmark.kinds import KINDS, work_of


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find columns of work that differ from the kind's count."""
    for file, number, row in tables.rows(*KERNEL_TABLES):
        if row["kind"] not in KINDS.names():
            continue
        try:
            expected = _counted(row["kind"], row["parameters"])
        except OpMarkError:
            continue  # keys-match says so
        for column, value in expected.items():
            if row[column] != value:
                yield Finding(
                    check=CHECK.name,
                    level=ERROR,
                    file=file,
                    row=number,
                    column=column,
                    message=f"{row[column]}, but kind {row['kind']!r} counts {value}",
                )


@lru_cache(maxsize=65536)  # a kernel has a row per target
def _counted(kind: str, parameters: str) -> Mapping[str, int]:
    """FLOPs and bytes by column. Raises `OpMarkError` where it is no kernel."""
    counted: Mapping[str, int] = plain(work_of(kernel_of(kind, parameters)))
    return counted


CHECK = Check(
    name="work-matches",
    title="Work is counted by the kind",
    description="flops, read_bytes, written_bytes and weight_bytes are what the kind counts for the parameters.",
    findings=findings,
)
