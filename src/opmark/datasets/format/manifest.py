"""What a release says about itself: `manifest.json`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core import schema
from opmark.core.canonical import content_id, plain
from opmark.core.environment import Environment
from opmark.core.errors import ContentError
from opmark.core.files import json_text
from opmark.core.target import Target
from opmark.datasets.format.columns import SCHEMA

FILE = "manifest.json"
LICENCE = "CC-BY-4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a release; `rows` where it is a table."""

    name: str
    sha256: str
    size_bytes: int
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A journal that rows came from.

    `sentinels_ns` has the median of each sentinel by `<target>/<sentinel>`, `sampled_s` the seconds that passed inside
    samples, by target: what measuring them cannot cost less than.
    """

    name: str
    sha256: str
    kernels: int
    networks: int
    sentinels_ns: Mapping[str, float] = field(default_factory=dict)
    sampled_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The highest rate that the rows of a target support (`opmark.datasets.validation.peaks` says how it is found).

    `quantity` is `flops_per_s` (of one `dtype`), `hot_bytes_per_s` or `rotated_bytes_per_s`.
    """

    target: str
    quantity: str
    rate: float
    rows: int
    dtype: str = ""


MEASURED = "measured"
IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Who took the measurements: `measured` by OpMark, or `imported` from tables that others published.

    `format` is the importer's name, `source` and `attribution` say whose tables they are, `label` what their authors
    call a latency.
    """

    kind: str = MEASURED
    format: str = ""
    source: str = ""
    attribution: str = ""
    label: str = ""


OURS = Provenance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A release's identity, contents and origin. `statistics` holds the figures of the card (`release.statistics`).

    `published` is the day it was built, such as `2026-11-21`; releases from before that was written have none.
    """

    name: str
    device: str
    version: str
    id: str
    files: tuple[FileEntry, ...]
    targets: tuple[Target, ...]
    environments: tuple[Environment, ...]
    licence: str = LICENCE
    published: str = ""
    provenance: Provenance = OURS
    peaks: tuple[Peak, ...] = ()
    sources: tuple[Source, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str) -> FileEntry | None:
        """The file called `name`, if the release has it."""
        return next((entry for entry in self.files if entry.name == name), None)


def identity(device: str, files: tuple[FileEntry, ...]) -> str:
    """A release's id: the hash of its tables. Two releases with the same rows have the same id."""
    tables = sorted((entry.name, entry.sha256) for entry in files if entry.rows is not None)
    return content_id([SCHEMA, device, tables])


def text(manifest: Manifest) -> str:
    """The manifest as it stands in the file."""
    return json_text({"schema": SCHEMA, **plain(manifest)})


def read(folder: Path) -> Manifest:
    """The manifest of the release in `folder`.

    Raises `ContentError` naming the file and key: absent, not JSON, schema missing, too old or too new, wrong keys.
    """
    path = folder / FILE
    if not folder.is_dir():
        raise ContentError("no such release folder", where=str(folder))
    manifest = schema.load(path, Manifest, schema=SCHEMA)
    for entry in manifest.files:
        if Path(entry.name).name != entry.name or entry.name in {"", ".", "..", FILE}:
            raise ContentError(f"{entry.name!r} is not a file of this folder", where=f"{path}: files")
    return manifest
