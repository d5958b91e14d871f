"""The manifest of a release: identity, files, targets, environments and figures."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core import schema
from opmark.core.canonical import content_id, plain
from opmark.core.checksums import with_checksum
from opmark.core.errors import ContentError
from opmark.core.files import check_listed, json_text
from opmark.core.hardware.target import Target
from opmark.core.measurements.environment import Environment, Fact
from opmark.core.slug import Slug, Version
from opmark.datasets.format.columns import READABLE, SCHEMA

FILE = "manifest.json"
# The checksums of manifests that were published without one of their own, beside the folders of the devices.
CHECKSUMS = "SHA256SUMS"
# Configurations for Hugging Face beside a release whose card names none; no part of the release.
CONFIGURATIONS = ".huggingface.yaml"
LICENCE = "CC-BY-4.0"
FLOPS, HOT_BYTES, ROTATED_BYTES = QUANTITIES = ("flops_per_s", "hot_bytes_per_s", "rotated_bytes_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a release; `rows` where it is a table."""

    name: Slug
    sha256: str
    size_bytes: int
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """A journal or a published table that rows came from.

    `sentinels_ns` holds the median of each sentinel by `<target>/<sentinel>`, and by the work before its readings.
    `sampled_s` holds the seconds inside samples by target, which is the least time that measuring can take.
    """

    name: str
    sha256: str
    kernels: int
    networks: int
    sentinels_ns: Mapping[str, float] = field(default_factory=dict)
    sampled_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The highest rate that the rows of a target support; `validation.peaks` finds it.

    `quantity` is `flops_per_s` (of one `dtype`), `hot_bytes_per_s` or `rotated_bytes_per_s`.
    """

    target: str
    quantity: str
    rate: float
    rows: int
    dtype: str = ""

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise ValueError(f"quantity: one of {', '.join(QUANTITIES)}, not {self.quantity!r}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"rate: must be positive, not {self.rate}")


MEASURED = "measured"
IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseProvenance:
    """The origin of measurements: `measured` by OpMark, or `imported` from tables that others published.

    `format` is the importer's name; `source` and `attribution` name the publishers; `label` is the authors' definition
    of a latency.
    """

    kind: str = MEASURED
    format: str = ""
    source: str = ""
    attribution: str = ""
    label: str = ""


OURS = ReleaseProvenance()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseManifest:
    """A release's identity, contents and origin. `statistics` holds the figures of the card (`release.statistics`).

    `published` is the day of the build, such as `2026-11-21`; the first releases do not state it.
    """

    schema: int = SCHEMA
    name: Slug
    device: Slug
    version: Version
    id: str
    files: tuple[FileEntry, ...]
    targets: tuple[Target, ...]
    environments: tuple[Environment, ...]
    licence: str = LICENCE
    published: str = ""
    provenance: ReleaseProvenance = OURS
    peaks: tuple[Peak, ...] = ()
    sources: tuple[RowSource, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def entry(self, name: str) -> FileEntry | None:
        """Look up the file called `name`."""
        return next((entry for entry in self.files if entry.name == name), None)


def identity(device: str, files: tuple[FileEntry, ...], schema: int = SCHEMA) -> str:
    """Compute a release's id, the hash of its tables; releases with the same rows have the same id."""
    tables = sorted((entry.name, entry.sha256) for entry in files if entry.rows is not None)
    return content_id([schema, device, tables])


def text(manifest: ReleaseManifest) -> str:
    """Write the manifest as the text of its file."""
    return with_checksum(json_text(plain(manifest)))


def read(folder: Path) -> ReleaseManifest:
    """Read the manifest of the release in `folder`.

    Raises `ContentError` naming file and key: absent, not JSON, schema missing, too old or too new, wrong keys.
    """
    path = folder / FILE
    if not folder.is_dir():
        raise ContentError("no such release folder", where=str(folder))
    listed = check_listed(path, folder.parent.parent / CHECKSUMS)
    manifest = schema.load(path, ReleaseManifest, schema=SCHEMA, oldest=min(READABLE), sealed=not listed)
    for entry in manifest.files:
        if entry.name == FILE:
            raise ContentError(f"{entry.name!r} is not a file of this folder", where=f"{path}: files")
    return manifest


@contextlib.contextmanager
def reading_figures(manifest: ReleaseManifest) -> Iterator[None]:
    """Raise `ContentError` where the block fails on `statistics`, whose content no field describes."""
    from jinja2 import TemplateError

    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, TemplateError) as error:
        raise ContentError(
            f"not the figures of a release ({type(error).__name__}: {error})",
            where=f"{manifest.device}/{manifest.version}/{FILE}: statistics",
        ) from error


def conflicts(first: Environment, other: Environment) -> dict[str, tuple[Fact, Fact]]:
    """Find the checked facts on which two environments disagree; a release must not contain both.

    A fact of a runtime (`onnxruntime.version`) is recorded only where that runtime was measured, so one side may lack
    it.
    """
    return {
        name: pair
        for name, pair in first.differences(other).items()
        if "." not in name or (name in first.checked and name in other.checked)
    }


def common_facts(environments: Iterable[Environment]) -> dict[str, Fact]:
    """Collect the checked facts of environments that do not conflict."""
    return {name: value for environment in environments for name, value in sorted(environment.checked.items())}
