"""All findings about a release: checksums of its files, the format of its tables, and every check."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError
from opmark.core.files import sha256
from opmark.datasets.format import manifest
from opmark.datasets.format.columns import TABLES, TableFormat, checked_table
from opmark.datasets.format.manifest import FileEntry, ReleaseManifest
from opmark.datasets.format.parquet_file import read_parquet
from opmark.datasets.validation.check import CHECKS, ERROR, WARNING, Finding, ReleaseTables

if TYPE_CHECKING:
    import pyarrow

CHECK_NAME = "files"


def validate(folder: Path) -> tuple[Finding, ...]:
    """Collect the findings of all checks on everything that can be read; a sound release has none."""
    try:
        described = manifest.read(folder)
    except ContentError as error:
        return (Finding(check="manifest", level=ERROR, file=manifest.FILE, message=str(error)),)
    found = list(file_findings(folder, described))
    tables = {}
    for name, table in TABLES.items():
        entry = described.entry(table.file)
        if entry is None or not (folder / table.file).is_file():
            continue
        try:
            tables[name] = read_table(folder, table)
        except ContentError as error:
            found.append(Finding(check="columns", level=ERROR, file=table.file, message=str(error)))
            continue
        if tables[name].num_rows != entry.rows:
            message = f"{tables[name].num_rows} rows, but {manifest.FILE} says {entry.rows}"
            found.append(Finding(check="columns", level=ERROR, file=table.file, message=message))
    readable = ReleaseTables(manifest=described, tables=tables)
    for check in CHECKS:
        found += check.findings(readable)
    return tuple(found)


def file_findings(folder: Path, described: ReleaseManifest) -> Iterator[Finding]:
    """Find files that are missing, changed or unexpected, and an id that does not belong to the tables."""
    for table in TABLES.values():
        if table.required and described.entry(table.file) is None:
            yield _finding(manifest.FILE, f"{table.file} is not listed", column="files")
    for entry in described.files:
        problem = _problem(folder / entry.name, entry)
        if problem:
            yield _finding(entry.name, problem)
    expected = manifest.identity(described.device, described.files, described.schema)
    if described.id != expected:
        yield _finding(manifest.FILE, f"{described.id!r} is not the id of the listed tables, {expected!r}", column="id")
    known = {manifest.FILE, manifest.CONFIGURATIONS, *(entry.name for entry in described.files)}
    for path in sorted(folder.iterdir()):
        if path.name not in known:
            yield _finding(path.name, "is not part of the release", level=WARNING)


def read_table(folder: Path, table: TableFormat) -> "pyarrow.Table":
    """Read one table and cast it to its format. Raises `ContentError` naming the file or column."""
    path = folder / table.file
    return checked_table(table, read_parquet(path), str(path))


def _problem(path: Path, entry: FileEntry) -> str:
    try:
        size_bytes = path.stat().st_size
        if size_bytes != entry.size_bytes:
            return f"{size_bytes} bytes, but {manifest.FILE} says {entry.size_bytes}"
        return "" if sha256(path) == entry.sha256 else f"its content is not what {manifest.FILE} says (SHA-256 differs)"
    except FileNotFoundError:
        return "the file is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ContentError as error:
        return error.message


def _finding(file: str, message: str, *, level: str = ERROR, column: str = "") -> Finding:
    return Finding(check=CHECK_NAME, level=level, file=file, message=message, column=column)
