"""Kind, parameters, key and element type of a row belong together."""

from collections.abc import Iterator
from typing import Any

from opmark.core.canonical import canonical_json
from opmark.core.errors import OpMarkError
from opmark.datasets.format.columns import kernel_of
from opmark.datasets.validation.check import ERROR, KERNEL_TABLES, Check, Finding, ReleaseTables
from opmark.kinds import KINDS


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find unknown kinds, parameters that their kind refuses, and wrong keys or element types."""
    for file, number, row in tables.rows(*KERNEL_TABLES):
        for column, message in _problems(row):
            yield Finding(check=CHECK.name, level=ERROR, file=file, row=number, column=column, message=message)


def _problems(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if row["kind"] not in KINDS.names():
        yield "kind", f"no kind is called {row['kind']!r}"
        return
    try:
        kernel = kernel_of(row["kind"], row["parameters"])
        KINDS.load(kernel.kind).parse(kernel)
    except OpMarkError as error:
        yield "parameters", error.message
        return
    if row["parameters"] != canonical_json(kernel.params):
        yield "parameters", "not written canonically (sorted keys, no spaces)"
    if row["kernel_key"] != kernel.key:
        yield "kernel_key", f"{row['kernel_key']!r} is not the key of this kernel, {kernel.key!r} is"
    if row["dtype"] != kernel.params.get("dtype"):
        yield "dtype", f"{row['dtype']!r} is not the parameters' {kernel.params.get('dtype')!r}"


CHECK = Check(
    name="keys-match",
    title="Keys name their kernels",
    description="The kind is known and takes the parameters; key and element type are derived from them.",
    findings=findings,
)
