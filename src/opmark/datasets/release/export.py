"""The export of a release: CSV, Markdown, one flat Parquet file, Croissant metadata."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core import files
from opmark.core.errors import UsageError
from opmark.core.registry import unknown_name
from opmark.datasets.format.columns import FUSION, KERNELS, LINKS, NETWORKS, TABLES
from opmark.datasets.release.croissant import croissant
from opmark.datasets.release.release import Release

if TYPE_CHECKING:
    import pyarrow

TABLE_NAMES = (KERNELS.name, NETWORKS.name, FUSION.name, LINKS.name)
# Columns of Markdown tables; only other formats contain quantiles and provenance.
_SHOWN = {
    KERNELS.name: ("target", "kind", "parameters", "status", "latency_hot_ns", "latency_rotated_ns", "flops"),
    NETWORKS.name: ("target", "network", "batch", "role", "status", "latency_ns", "peak_memory_bytes"),
    FUSION.name: ("target", "pair", "shape", "status", "white_box", "black_box", "saving", "kernels"),
    LINKS.name: ("source", "destination", "memory", "status", "bandwidth_bytes_per_s", "largest_error"),
}


def export(release: Release, name: str, *, table: str = KERNELS.name, target: str = "") -> bytes:
    """Export one table of `release` (of one target, if given) in the format `name`, or its metadata (`croissant`).

    Lists become JSON text in CSV. Raises `UnknownNameError` for an unknown format, table or target.
    """
    if name == "croissant":
        return files.json_text(croissant(release.manifest)).encode()
    if name not in _FORMATS:
        raise unknown_name("format", name, FORMATS)
    if table not in TABLE_NAMES:
        raise unknown_name("table", table, TABLE_NAMES)
    return _FORMATS[name](_selected(release, table, target), table)


def write(release: Release, name: str, path: Path, *, table: str = KERNELS.name, target: str = "") -> None:
    """Write an export to a file, completely or not at all. Raises `UsageError` for a path inside the release."""
    if release.path.resolve() in path.resolve().parents:
        raise UsageError("a release is never changed", where=str(path), hint="export to another folder")
    files.write_bytes(path, export(release, name, table=table, target=target))


def _selected(release: Release, table: str, target: str) -> "pyarrow.Table":
    import pyarrow.compute

    if table not in release.tables:
        raise UsageError(f"{release.name} has no {table}: they were not measured", where=str(release.path))
    rows = release.tables[table]
    if target and "target" in rows.column_names:
        rows = rows.filter(pyarrow.compute.equal(rows["target"], release.target(target).name))
    identity = {"device": release.device, "version": release.version}
    for position, (name, value) in enumerate(identity.items()):
        rows = rows.add_column(position, name, pyarrow.array([value] * rows.num_rows, type=pyarrow.string()))
    return rows


def _csv(rows: "pyarrow.Table", table: str) -> bytes:
    import pyarrow
    import pyarrow.csv

    for column in TABLES[table].columns:
        if column.type.startswith("list"):
            index = rows.column_names.index(column.name)
            text = pyarrow.array([json.dumps(value) for value in rows[column.name].to_pylist()], type=pyarrow.string())
            rows = rows.set_column(index, column.name, text)
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(rows, buffer)
    return buffer.getvalue()


def _parquet(rows: "pyarrow.Table", _table: str) -> bytes:
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()


def _markdown(rows: "pyarrow.Table", table: str) -> bytes:
    names = _SHOWN[table]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_cell(row[name]) for name in names)} |" for row in rows.select(names).to_pylist()]
    return ("\n".join(lines) + "\n").encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


_FORMATS: dict[str, Callable[["pyarrow.Table", str], bytes]] = {
    "csv": _csv,
    "markdown": _markdown,
    "parquet": _parquet,
}
FORMATS = (*_FORMATS, "croissant")
