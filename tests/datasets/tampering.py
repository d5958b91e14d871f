"""Releases with something wrong in them, checksums and id made to fit unless they are the point."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.sealing import unsealed

from opmark.core.files import sha256
from opmark.datasets.format import manifest
from opmark.datasets.format.columns import TABLES


def change_rows(folder: Path, table: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Let `change` edit the rows of a table, then write table and manifest as if it had been built so."""
    path = folder / TABLES[table].file
    found = pq.read_table(path)
    rows = found.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=found.schema), path, compression="zstd")
    fit_manifest(folder)


def set_value(folder: Path, table: str, row: int, **values: Any) -> None:
    """Put other values into one row."""
    change_rows(folder, table, lambda rows: rows[row].update(values))


def fit_manifest(folder: Path) -> None:
    """Write every size, checksum, row count and the id anew."""
    found = manifest.read(folder)
    entries = tuple(
        dataclasses.replace(
            entry,
            sha256=sha256(folder / entry.name),
            size_bytes=(folder / entry.name).stat().st_size,
            rows=None if entry.rows is None else pq.read_metadata(folder / entry.name).num_rows,
        )
        for entry in found.files
    )
    new = dataclasses.replace(found, files=entries, id=manifest.identity(found.device, entries))
    (folder / manifest.FILE).write_text(manifest.text(new))


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Let `change` edit the manifest's JSON."""
    path = folder / manifest.FILE
    content = json.loads(unsealed(path.read_text()))
    change(content)
    path.write_text(json.dumps(content))
