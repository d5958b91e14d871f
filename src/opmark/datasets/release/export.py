"""The export of a release: CSV, Markdown, one flat Parquet file, Croissant metadata."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core import files
from opmark.core.errors import UsageError
from opmark.core.plain_text import one_line
from opmark.core.reading import parse_json
from opmark.core.registry import unknown_name
from opmark.datasets.format.columns import FUSION, KERNELS, LINKS, NETWORKS, TABLES
from opmark.datasets.format.parquet_file import read_parquet
from opmark.datasets.release.croissant import croissant_of
from opmark.datasets.release.huggingface import configurations_text
from opmark.datasets.release.network_kernels import (
    NETWORK_KERNELS,
    GraphFinder,
    checked_network_kernels,
    network_kernels,
)
from opmark.datasets.release.portable_folder import portable_card, write_portable_folder
from opmark.datasets.release.release import Release

if TYPE_CHECKING:
    import pyarrow

TABLE_NAMES = (KERNELS.name, NETWORKS.name, FUSION.name, LINKS.name, NETWORK_KERNELS)
CARD, CROISSANT, HUGGINGFACE, FOLDER = "card", "croissant", "huggingface", "folder"
_PARAMETERS = "parameters"
# Columns of Markdown tables; only other formats contain quantiles and provenance.
_SHOWN = {
    KERNELS.name: ("target", "kind", "parameters", "status", "latency_hot_ns", "latency_rotated_ns", "flops"),
    NETWORKS.name: ("target", "network", "batch", "role", "status", "latency_ns", "peak_memory_bytes"),
    FUSION.name: ("target", "pair", "shape", "status", "white_box", "black_box", "saving", "kernels"),
    LINKS.name: ("source", "destination", "memory", "status", "bandwidth_bytes_per_s", "largest_error"),
    NETWORK_KERNELS: ("target", "network", "batch", "kind", "parameters", "calls", "flops", "moved_bytes"),
}


def export(
    release: Release,
    name: str,
    *,
    table: str = KERNELS.name,
    target: str = "",
    flat: bool = False,
    find: GraphFinder | None = None,
) -> bytes:
    """Export one table of `release` (of one target, if given) in the format `name`, or its metadata.

    Metadata are its `card`, its `croissant`, and the configurations of its tables (`huggingface`).

    `flat` makes a column of each parameter of kernels. Lists become JSON text in CSV. Croissant names the tables by
    their address on this machine, so that it may lie anywhere on it. The table `network_kernels` is the release's own,
    or is made of the graphs that `find` finds. Raises `UnknownNameError` for an unknown format,
    table or target.
    """
    if name == CROISSANT:
        place = release.path.resolve().as_posix()
        return files.json_text(croissant_of(release.path, release.manifest, place)).encode()
    if name == CARD:
        return portable_card(release).encode()
    if name == HUGGINGFACE:
        return configurations_text(release.manifest).encode()
    if name == FOLDER:
        raise UsageError("a folder cannot be printed", hint="name a new folder with -o FOLDER")
    if name not in _FORMATS:
        raise unknown_name("format", name, FORMATS)
    if table not in TABLE_NAMES:
        raise unknown_name("table", table, TABLE_NAMES)
    rows = _selected(release, table, target, find)
    if flat:
        rows = with_parameters(rows, table)
    return _FORMATS[name](rows, table)


def write(
    release: Release,
    name: str,
    path: Path,
    *,
    table: str = KERNELS.name,
    target: str = "",
    flat: bool = False,
    find: GraphFinder | None = None,
) -> None:
    """Write an export to a file, completely or not at all; `folder` makes a folder that may be moved anywhere.

    Raises `UsageError` for a path inside the release.
    """
    if release.path.resolve() in path.resolve().parents:
        raise UsageError("a release is never changed", where=str(path), hint="export to another folder")
    if name == FOLDER:
        write_portable_folder(release, path)
        return
    content = export(release, name, table=table, target=target, flat=flat, find=find)
    files.write_bytes(path, content)


def with_parameters(rows: "pyarrow.Table", table: str = KERNELS.name) -> "pyarrow.Table":
    """`rows` of kernels with a column `parameter_<name>` for each parameter of any kind, empty where a kind has none.

    A parameter that is a number, a text or a truth value in all rows keeps its type; any other becomes JSON text.
    Raises `UsageError` for a table without parameters.
    """
    import pyarrow

    if _PARAMETERS not in rows.column_names:
        raise UsageError(f"{table} have no parameters", hint=f"leave --flat away, or export {KERNELS.name}")
    parsed = [parse_json(text.encode(), _PARAMETERS) for text in rows[_PARAMETERS].to_pylist()]
    names = sorted({name for one in parsed for name in one})
    position = rows.column_names.index(_PARAMETERS)
    rows = rows.remove_column(position)
    for offset, name in enumerate(names):
        values = [one.get(name) for one in parsed]
        kinds = {type(value) for value in values if value is not None}
        if not (len(kinds) == 1 and kinds <= {bool, int, float, str}) and kinds != {int, float}:
            values = [None if value is None else json.dumps(value) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        rows = rows.add_column(position + offset, f"parameter_{name}", pyarrow.array(values))
    return rows


def _selected(release: Release, table: str, target: str, find: GraphFinder | None) -> "pyarrow.Table":
    import pyarrow.compute

    if table != NETWORK_KERNELS and table not in release.tables:
        raise UsageError(f"{release.name} has no {table}: they were not measured", where=str(release.path))
    rows = _network_kernels(release, find) if table == NETWORK_KERNELS else release.tables[table]
    if target and "target" in rows.column_names:
        rows = rows.filter(pyarrow.compute.equal(rows["target"], release.target(target).name))
    identity = {"device": release.device, "version": release.version}
    for position, (name, value) in enumerate(identity.items()):
        rows = rows.add_column(position, name, pyarrow.array([value] * rows.num_rows, type=pyarrow.string()))
    return rows


def _network_kernels(release: Release, find: GraphFinder | None) -> "pyarrow.Table":
    stored = release.path / f"{NETWORK_KERNELS}.parquet"
    if release.manifest.entry(stored.name) is not None:
        return checked_network_kernels(read_parquet(stored), str(stored))
    if find is None:
        raise UsageError(f"{release.name} holds no {NETWORK_KERNELS}", hint="export them with `opmark datasets export`")
    networks = [one for target in release.targets for one in release.network_measurements(target.name)]
    return network_kernels(networks, find)


def _csv(rows: "pyarrow.Table", table: str) -> bytes:
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv

    for column in TABLES[table].columns if table in TABLES else ():
        if column.type.startswith("list"):
            if column.name not in rows.column_names:
                continue
            index = rows.column_names.index(column.name)
            text = pyarrow.array([json.dumps(value) for value in rows[column.name].to_pylist()], type=pyarrow.string())
            rows = rows.set_column(index, column.name, text)
    for index, name in enumerate(rows.column_names):
        if pyarrow.types.is_string(rows.schema.field(name).type):
            # A spreadsheet runs a text that begins like a formula: a quote before it keeps it a text.
            harmless = pyarrow.compute.replace_substring_regex(rows[name], r"^([=+\-@\t\r])", r"'\1")
            rows = rows.set_column(index, name, harmless)
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(rows, buffer)
    return buffer.getvalue()


def _parquet(rows: "pyarrow.Table", _table: str) -> bytes:
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(rows, buffer, compression="zstd")
    return buffer.getvalue()


def _markdown(rows: "pyarrow.Table", table: str) -> bytes:
    flat = [name for name in rows.column_names if name.startswith("parameter_")]
    names = [name for shown in _SHOWN[table] for name in (flat if flat and shown == _PARAMETERS else [shown])]
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_cell(row[name]) for name in names)} |" for row in rows.select(names).to_pylist()]
    return ("\n".join(lines) + "\n").encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.1f}" if isinstance(value, float) else one_line(str(value))
    return text.replace("|", "\\|").replace("<", "&lt;")


_FORMATS: dict[str, Callable[["pyarrow.Table", str], bytes]] = {
    "csv": _csv,
    "markdown": _markdown,
    "parquet": _parquet,
}
FORMATS = (*_FORMATS, CARD, CROISSANT, HUGGINGFACE, FOLDER)
