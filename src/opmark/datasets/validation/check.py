"""What a check of a release is; one file of `opmark.datasets.checks` per check."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.registry import Registry
from opmark.datasets.format.columns import TABLES
from opmark.datasets.format.manifest import Manifest

if TYPE_CHECKING:
    import pyarrow

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a check found. `row` counts from 0 within `file`; an error makes the release invalid."""

    check: str
    level: str
    file: str
    message: str
    row: int | None = None
    column: str = ""

    @property
    def where(self) -> str:
        """File, row and column, as far as they are known."""
        row = "" if self.row is None else f": row {self.row}"
        return f"{self.file}{row}{f': {self.column}' if self.column else ''}"

    def error(self, folder: str) -> ContentError:
        """This finding as the error that refuses the release in `folder`."""
        return ContentError(self.message, where=f"{folder}/{self.where}", hint="`opmark datasets validate` lists all")


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What checks look at: the manifest and those tables that could be read, by name."""

    manifest: Manifest
    tables: Mapping[str, "pyarrow.Table"]

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        # Every check walks the rows; turning Arrow into Python is what takes the time, so it happens once.
        return {name: table.to_pylist() for name, table in self.tables.items()}

    def rows(self, *names: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """(file, row number, row) over the tables called `names`; all of them where none is named."""
        for name in names or TABLES:
            if name in self.tables:
                for number, row in enumerate(self._rows[name]):
                    yield TABLES[name].file, number, row


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold. `findings` gets the tables and yields what does not hold, never raising for it.

    An `essential` check runs whenever a table is read, not only on `validate`: it must be quick.
    """

    name: str
    title: str
    description: str
    findings: Callable[[Tables], Iterable[Finding]]
    essential: bool = False


CHECKS: Registry[Check] = Registry("opmark.datasets.checks", "CHECK", "check")

KERNEL_TABLES = ("kernels", "kernel_repeats")
NETWORK_TABLES = ("networks", "network_repeats")
