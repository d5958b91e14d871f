"""Everything that is wrong with a release, not only the first thing."""

from pathlib import Path

from opmark.core.errors import ContentError
from opmark.datasets.format import manifest
from opmark.datasets.format.columns import TABLES
from opmark.datasets.validation import integrity
from opmark.datasets.validation.check import CHECKS, ERROR, Finding, Tables


def validate(folder: Path) -> tuple[Finding, ...]:
    """All findings of all checks on what can be read; empty where the release is sound."""
    try:
        described = manifest.read(folder)
    except ContentError as error:
        return (Finding(check="manifest", level=ERROR, file=manifest.FILE, message=str(error)),)
    found = list(integrity.findings(folder, described))
    tables = {}
    for name, table in TABLES.items():
        entry = described.entry(table.file)
        if entry is None or not (folder / table.file).is_file():
            continue
        try:
            tables[name] = integrity.read_table(folder, table)
        except ContentError as error:
            found.append(Finding(check="columns", level=ERROR, file=table.file, message=str(error)))
            continue
        if tables[name].num_rows != entry.rows:
            message = f"{tables[name].num_rows} rows, but {manifest.FILE} says {entry.rows}"
            found.append(Finding(check="columns", level=ERROR, file=table.file, message=message))
    readable = Tables(manifest=described, tables=tables)
    for check in CHECKS:
        found += check.findings(readable)
    return tuple(found)
