"""Every number is finite, and every latency is above zero."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from opmark.datasets.format.columns import TABLES, Column, number_problem
from opmark.datasets.validation.check import ERROR, Check, Finding, ReleaseTables

if TYPE_CHECKING:
    import pyarrow


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find numbers that are NaN, infinite or negative, and latencies of zero."""
    for name, table in tables.tables.items():
        for column in TABLES[name].columns:
            values = table.column(column.name)
            if _is_sound(column, values):
                continue
            for row, value in enumerate(values.to_pylist()):
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


def _is_sound(column: Column, values: "pyarrow.ChunkedArray") -> bool:
    """True where nothing is wrong with a whole column; looking at each of its values takes a hundred times as long."""
    from pyarrow import compute, types

    if column.type == "string":
        return True
    numbers = values
    if types.is_list(values.type):
        numbers = compute.list_flatten(values)
        if numbers.null_count:
            return False
    if not compute.all(compute.is_finite(numbers), min_count=0).as_py():
        return False
    return not number_problem(column, compute.min(numbers).as_py())


CHECK = Check(
    name="latencies-positive",
    title="Numbers are numbers",
    description="No value is NaN, infinite or negative, and no latency is zero.",
    findings=findings,
    essential=True,
)
