"""Kind, parameters, key and element type of a row belong together."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from opmark.core.canonical import canonical_json
from opmark.core.errors import OpMarkError
from opmark.core.kernels.kernel import key_of
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
        canonical, key, dtype = _derived(row["kind"], row["parameters"])
    except OpMarkError as error:
        yield "parameters", error.message
        return
    if row["parameters"] != canonical:
        yield "parameters", "not written canonically (sorted keys, no spaces)"
    if row["kernel_key"] != key:
        yield "kernel_key", f"{row['kernel_key']!r} is not the key of this kernel, {key!r} is"
    if row["dtype"] != dtype:
        yield "dtype", f"{row['dtype']!r} is not the parameters' {dtype!r}"


@lru_cache(maxsize=65536)  # a kernel has a row per target
def _derived(kind: str, parameters: str) -> tuple[str, str, object]:
    """The canonical text, the key and the element type of a kernel. Raises `OpMarkError` where it is none."""
    kernel = kernel_of(kind, parameters)
    KINDS.load(kind).parse(kernel)
    canonical = canonical_json(kernel.params)
    return canonical, key_of(kind, canonical), kernel.params.get("dtype")


CHECK = Check(
    name="keys-match",
    title="Keys name their kernels",
    description="The kind is known and takes the parameters; key and element type are derived from them.",
    findings=findings,
)
