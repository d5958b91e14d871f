"""The interface of a check of releases; each file of `opmark.datasets.checks` implements one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.registry import Registry
from opmark.datasets.format.columns import TABLES
from opmark.datasets.format.manifest import ReleaseManifest

if TYPE_CHECKING:
    import pyarrow

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a check. `row` counts from 0 within `file`; an error makes the release invalid."""

    check: str
    level: str
    file: str
    message: str
    row: int | None = None
    column: str = ""

    @property
    def where(self) -> str:
        """The place: file, and row and column if they are known."""
        row = "" if self.row is None else f": row {self.row}"
        return f"{self.file}{row}{f': {self.column}' if self.column else ''}"

    def error(self, folder: str) -> ContentError:
        """Make the error that refuses the release in `folder`."""
        return ContentError(self.message, where=f"{folder}/{self.where}", hint="`opmark datasets validate` lists all")


@dataclass(frozen=True, kw_only=True)
class ReleaseTables:
    """The manifest of a release, and those of its tables that could be read, by name."""

    manifest: ReleaseManifest
    tables: Mapping[str, "pyarrow.Table"]

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        # most checks walk the rows, and converting Arrow to Python takes most of the time
        return {}

    def rows(self, *names: str, columns: Sequence[str] = ()) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Iterate over (file, row number, row) of the tables called `names`, by default of all.

        With `columns`, a row has at least those of them that its table has, and the lists of samples are not converted.
        """
        for name in names or TABLES:
            if name in self.tables:
                for number, row in enumerate(self._converted(name, columns)):
                    yield TABLES[name].file, number, row

    def _converted(self, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        table = self.tables[name]
        if name not in self._rows:
            if columns:
                found: list[dict[str, Any]] = table.select(
                    [one for one in columns if one in table.column_names]
                ).to_pylist()
                return found
            self._rows[name] = table.to_pylist()
        return self._rows[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A property that every release must have; `findings` yields violations and never raises for them.

    An `essential` check runs whenever a table is read, not only in `validate`, and must be quick.
    """

    name: str
    title: str
    description: str
    findings: Callable[[ReleaseTables], Iterable[Finding]]
    essential: bool = False


CHECKS: Registry[Check] = Registry("opmark.datasets.checks", "CHECK", "check")

KERNEL_TABLES = ("kernels", "kernel_repeats")
NETWORK_TABLES = ("networks", "network_repeats")
