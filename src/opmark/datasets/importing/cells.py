"""Published tables, CSV or Parquet, read cell by cell so that an error names the place."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError
from opmark.core.reading import LARGE_BYTES, read_text
from opmark.datasets.format.parquet_file import read_parquet

if TYPE_CHECKING:
    from _csv import Reader

_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Cells:
    """One row of a table by column name; `line` counts from 1, in Parquet from 0."""

    path: Path
    line: int
    values: Mapping[str, str]
    noun: str = "line"

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.path}: {self.noun} {self.line}"

    def text(self, column: str) -> str:
        """Read a text. Raises `ContentError` where there is no such column, or the cell is empty."""
        if column not in self.values:
            raise ContentError("no such column, and this row needs it", where=f"{self.where}: {column}")
        value = self.values[column].strip()
        if not value:
            raise ContentError("is empty", where=f"{self.where}: {column}")
        return value

    def whole(self, column: str, *, least: int = 1) -> int:
        """Read a whole number, at least `least`. Raises `ContentError`."""
        number = self.number(column)
        if number != int(number) or number < least:
            raise ContentError(
                f"{self.values[column]!r} is not a whole number from {least}", where=f"{self.where}: {column}"
            )
        return int(number)

    def number(self, column: str) -> float:
        """Read a finite number. Raises `ContentError`."""
        text = self.text(column)
        try:
            number = float(text if text.isascii() and "_" not in text else "no number")
        except ValueError:
            raise ContentError(f"{self.values[column]!r} is not a number", where=f"{self.where}: {column}") from None
        if not math.isfinite(number):
            raise ContentError(f"{self.values[column]!r} is not finite", where=f"{self.where}: {column}")
        return number

    def latency_ns(self, column: str, ns_per_unit: float) -> float:
        """Read a positive latency. Raises `ContentError`."""
        number = self.number(column)
        if number <= 0:
            raise ContentError(f"{number} is not a latency", where=f"{self.where}: {column}")
        return number * ns_per_unit


def rows(path: Path, needed: Sequence[str]) -> Iterator[Cells]:
    """Read the rows of a CSV or Parquet file with the columns `needed`. Raises `ContentError` naming file and line."""
    if path.suffix == ".parquet":
        yield from _parquet(path, needed)
        return
    text = read_text(path, at_most=LARGE_BYTES).removeprefix("\ufeff")
    yield from _csv(path, csv.reader(io.StringIO(text, newline=""), strict=True), needed)


def _csv(path: Path, lines: "Reader", needed: Sequence[str]) -> Iterator[Cells]:
    header: list[str] = []
    try:
        for cells in lines:
            if not header:
                header = [name.strip() for name in cells]
                _check_header(path, header, needed)
                continue
            if not cells:
                continue
            if len(cells) != len(header):
                raise ContentError(
                    f"{len(cells)} cells, but the header has {len(header)}", where=f"{path}: line {lines.line_num}"
                )
            yield Cells(path, lines.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise ContentError(f"not CSV: {error}", where=f"{path}: line {lines.line_num}") from error
    if not header:
        raise ContentError("the file is empty", where=str(path))


def _parquet(path: Path, needed: Sequence[str]) -> Iterator[Cells]:
    table = read_parquet(path)
    _check_header(path, table.column_names, needed)
    number = 0
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            values = {name: "" if value is None else str(value) for name, value in row.items()}
            yield Cells(path, number, values, "row")
            number += 1


def _check_header(path: Path, header: Sequence[str], needed: Sequence[str]) -> None:
    twice = [name for number, name in enumerate(header) if name and name in header[:number]]
    if twice:
        raise ContentError(f"the column {twice[0]!r} stands twice", where=f"{path}: line 1")
    missing = [name for name in needed if name not in header]
    if missing:
        raise ContentError(
            f"no column {missing[0]!r} among {', '.join(header)}",
            where=f"{path}: line 1: {missing[0]}",
            hint="is this the right --format?",
        )
