"""Every number is finite, and every latency is above zero."""

from collections.abc import Iterator

from opmark.datasets.format.columns import TABLES, number_problem
from opmark.datasets.validation.check import ERROR, Check, Finding, ReleaseTables


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find numbers that are NaN, infinite or negative, and latencies of zero."""
    for name, table in tables.tables.items():
        for column in TABLES[name].columns:
            for row, value in enumerate(table.column(column.name).to_pylist()):
                problem = number_problem(column, value)
                if problem:
                    yield Finding(
                        check=CHECK.name,
                        level=ERROR,
                        file=TABLES[name].file,
                        row=row,
                        column=column.name,
                        message=problem,
                    )


CHECK = Check(
    name="latencies-positive",
    title="Numbers are numbers",
    description="No value is NaN, infinite or negative, and no latency is zero.",
    findings=findings,
    essential=True,
)
