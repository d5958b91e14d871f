"""Writing of releases: files go into a temporary folder beside the final one, which is then renamed."""

import contextlib
import dataclasses
import datetime
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core import files
from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError, UsageError
from opmark.core.reading import PACKED
from opmark.core.slug import path_inside
from opmark.core.workspace import version_key, versions
from opmark.datasets.format import manifest
from opmark.datasets.format.columns import LINKS, NETWORKS, TABLES, link_of, network_of, table_of
from opmark.datasets.format.manifest import FileEntry, ReleaseManifest
from opmark.datasets.format.parquet_file import is_list
from opmark.datasets.release import card, croissant
from opmark.datasets.release.contents import Contents, gather, without_impossible
from opmark.datasets.release.network_kernels import NETWORK_KERNELS, GraphFinder, network_kernels
from opmark.datasets.release.statistics import statistics
from opmark.datasets.validation.check import CHECKS, ERROR, ReleaseTables
from opmark.datasets.validation.peaks import peaks

if TYPE_CHECKING:
    import pyarrow


def write(
    parts: list[Contents],
    folder: Path,
    *,
    version: str | None = None,
    journals: Sequence[Path] = (),
    find: GraphFinder | None = None,
) -> Path:
    """Gather `parts` and write them to `folder/<device>/<version>`, by default the next version; return that folder.

    The `journals` lie compressed beside the tables. `find` gives the graphs of networks (`network_kernels`).

    Raises `UsageError` for an existing, listed or malformed version, `ContentError` where parts disagree or rows fail a
    check, `OpMarkError` where the disk is full. Nothing is left behind on an error.
    """
    names = [_packed_name(path) for path in journals]
    repeated = [name.removesuffix(PACKED) for name in names if names.count(name) > 1]
    if repeated:
        raise UsageError(f"two journals are called {repeated[0]!r}", hint="rename one: rows name their journal")
    contents = without_impossible(gather(parts))
    device_folder = path_inside(folder, contents.device)
    version = version or next_version(device_folder)
    try:
        version_key(version)
    except ContentError as error:
        raise UsageError(error.message, hint=error.hint) from None
    final = device_folder / version
    if final.exists():
        raise UsageError(
            f"{contents.device} {version} exists already, and a release is never changed",
            where=str(final),
            hint=f"build --version {next_version(device_folder)}",
        )
    if files.listed_sha256(final / manifest.FILE, folder / manifest.CHECKSUMS) is not None:
        raise UsageError(
            f"{contents.device} {version} was released before, and a release is never changed",
            where=str(folder / manifest.CHECKSUMS),
            hint="build a version that is not listed there",
        )
    with _temporary_folder(device_folder, version) as temporary:
        beside = [_packed(path, temporary) for path in journals] + _kernels_of_networks(contents, find, temporary)
        _fill(temporary, contents, version, beside)
        temporary.rename(final)
    return final


def next_version(device_folder: Path) -> str:
    """Find the next minor version of a device; the first is `1.0.0`."""
    existing = versions(device_folder)
    if not existing:
        return "1.0.0"
    major, minor, _ = version_key(existing[-1])
    return f"{major}.{minor + 1}.0"


def today() -> str:
    """Today in UTC, such as `2026-11-21`; for a reproducible build, the day of SOURCE_DATE_EPOCH."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.datetime.now(datetime.UTC)
    return (datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch.isdecimal() else now).date().isoformat()


def _fill(folder: Path, contents: Contents, version: str, beside: Sequence[Path]) -> None:
    tables = {
        table.name: table_of(table, contents.table(table))
        for table in TABLES.values()
        if table.required or contents.table(table)
    }
    entries = []
    for name, content in tables.items():
        path = folder / TABLES[name].file
        _write_table(content, path)
        entries.append(_entry(path, rows=content.num_rows))
    described = ReleaseManifest(
        name=f"opmark-{contents.device}",
        device=contents.device,
        version=version,
        id=manifest.identity(contents.device, tuple(entries)),
        licence=contents.licence,
        published=today(),
        provenance=contents.provenance,
        files=tuple(entries),
        targets=contents.targets,
        environments=contents.environments,
        peaks=peaks(contents.rows["kernels"]),
        sources=contents.sources,
        statistics=statistics(contents),
    )
    _refuse_errors(ReleaseTables(manifest=described, tables=tables), contents.name)
    accompanying = [_entry(path) for path in beside]
    shown = dataclasses.replace(described, files=(*entries, *accompanying))
    for name, text in (
        (card.FILE, card.card(shown, [link_of(row) for row in contents.table(LINKS)])),
        (croissant.FILE, files.json_text(croissant.croissant(described))),
    ):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        entries.append(_entry(path))
    entries += accompanying
    complete = dataclasses.replace(described, files=tuple(entries))
    (folder / manifest.FILE).write_text(manifest.text(complete), encoding="utf-8")
    for path in folder.iterdir():
        _sync(path)


def _packed_name(journal: Path) -> str:
    return journal.name.removesuffix(PACKED) + PACKED


def _packed(journal: Path, folder: Path) -> Path:
    """Compress `journal` into `folder`: the same journal gives the same bytes."""
    packed = folder / _packed_name(journal)
    with (
        gzip.open(journal) if journal.suffix == PACKED else journal.open("rb") as source,
        packed.open("xb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as stream,
    ):
        shutil.copyfileobj(source, stream)
    return packed


def _kernels_of_networks(contents: Contents, find: GraphFinder | None, folder: Path) -> list[Path]:
    """Write the table of the kernels of networks, if `find` has a graph of any."""
    networks = [network_of(row) for row in contents.table(NETWORKS)]
    if find is None or not networks:
        return []
    try:
        table = network_kernels(networks, find)
    except NothingSelectedError:
        return []
    path = folder / f"{NETWORK_KERNELS}.parquet"
    _write_table(table, path)
    return [path]


def _write_table(table: "pyarrow.Table", path: Path) -> None:
    """Write a table. Bytes of one place in all numbers of a column stand together, which zstd packs a sixth smaller."""
    import pyarrow.parquet

    numbers: list[str] = []
    others: list[str] = []
    for field in table.schema:
        kind = field.type.value_type if is_list(field.type) else field.type
        leaf = f"{field.name}.list.element" if is_list(field.type) else field.name
        (numbers if pyarrow.types.is_floating(kind) else others).append(leaf)
    pyarrow.parquet.write_table(
        table,
        path,
        compression="zstd",
        compression_level=12,
        use_dictionary=others,
        use_byte_stream_split=numbers,
    )


def _entry(path: Path, *, rows: int | None = None) -> FileEntry:
    return FileEntry(name=path.name, sha256=files.sha256(path), size_bytes=path.stat().st_size, rows=rows)


def _refuse_errors(tables: ReleaseTables, source: str) -> None:
    found = [finding for check in CHECKS for finding in check.findings(tables) if finding.level == ERROR]
    if found:
        more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        raise ContentError(f"{found[0].message}{more}", where=f"{source}: {found[0].where}")


@contextlib.contextmanager
def _temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """Make a folder in `parent` and remove it afterwards, unless it was renamed."""
    made = not parent.exists()
    temporary = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=parent, prefix=f".{name}.", suffix=".tmp"))
        temporary.chmod(0o755)
        yield temporary
        _sync(parent)
    except OSError as error:
        raise OpMarkError(
            f"cannot write: {error.strerror or error}",
            where=str(parent / name),
            hint="free some space or choose another place",
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if made and parent.exists() and not any(parent.iterdir()):
            parent.rmdir()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
