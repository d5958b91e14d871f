"""A kernel has one row per target, a network one per target, batch and graph."""

from collections.abc import Iterator

from opmark.datasets.format.columns import TABLES
from opmark.datasets.validation.check import ERROR, Check, Finding, ReleaseTables


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find rows with the identity of an earlier row; only repeat tables may contain them."""
    for name, table in tables.tables.items():
        if not TABLES[name].unique:
            continue
        identity = TABLES[name].identity
        first: dict[tuple[object, ...], int] = {}
        keys = zip(*(table.column(column).to_pylist() for column in identity), strict=True)
        for row, key in enumerate(keys):
            if first.setdefault(key, row) != row:
                yield Finding(
                    check=CHECK.name,
                    level=ERROR,
                    file=TABLES[name].file,
                    row=row,
                    column=identity[-1],
                    message=f"row {first[key]} already holds the same {', '.join(identity)}",
                )


CHECK = Check(
    name="rows-unique",
    title="One row per kernel and target",
    description="No two rows have the same target, kind and parameters, or target, network, batch and graph.",
    findings=findings,
    essential=True,
)
