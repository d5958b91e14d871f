"""Releases made from published tables, and facts of the accelerators in them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.core.canonical import content_id
from opmark.core.errors import ContentError, NothingSelectedError, UsageError
from opmark.core.files import sha256
from opmark.core.hardware.target import Target
from opmark.core.measurements.environment import Environment, Fact
from opmark.core.measurements.measurement import OK, Measurement, NetworkMeasurement
from opmark.core.slug import NAME
from opmark.datasets.format.manifest import IMPORTED, ReleaseProvenance, RowSource
from opmark.datasets.importing.importer import IMPORTERS, ImportedRow, Runtime, TableImporter
from opmark.datasets.release.building import build_from
from opmark.datasets.release.contents import from_measurements
from opmark.datasets.release.release import Release
from opmark.kinds import work_of

_SLUG = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")

# Multiprocessors, first-level cache of each, last-level cache; from NVIDIA's architecture whitepapers.
_ACCELERATORS = {
    "H200": (132, 256 << 10, 50 << 20),
    "H100 PCIe": (114, 256 << 10, 50 << 20),
    "H100": (132, 256 << 10, 50 << 20),
    "A100": (108, 192 << 10, 40 << 20),
    "V100": (80, 128 << 10, 6 << 20),
    "L40S": (142, 128 << 10, 96 << 20),
    "L4": (58, 128 << 10, 48 << 20),
    "T4": (40, 64 << 10, 4 << 20),
    "P100": (56, 24 << 10, 4 << 20),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A release made from published tables; `left_out` counts rows that were left out, by reason."""

    release: Release
    left_out: Mapping[str, int]


def import_tables(
    paths: Sequence[Path],
    format_name: str,
    folder: Path,
    *,
    device: str,
    facts: Mapping[str, Fact] | None = None,
    version: str | None = None,
) -> Import:
    """Make a release in `folder/<device>/<version>` from the tables at `paths`, all of one format and one device.

    `facts` adds facts of the device to those in the tables. Raises `UnknownNameError` for a format, `UsageError` for a
    device that cannot name a folder, `ContentError` naming file, line and column of the first bad row or the line that
    changes device or runtime, `NothingSelectedError` if no row is left.
    """
    if not (_SLUG.fullmatch(device) and NAME.accepts(device)):
        raise UsageError(f"{device!r} cannot name a device", hint="write it in small letters like a100-pcie-40gb")
    importer = IMPORTERS.load(format_name)
    collected = _Collected(device=device, suite=format_name, importer=importer, facts=facts or {})
    for path in paths:
        collected.read(path)
    if collected.environment is None:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in collected.left_out.most_common(3)) or "no rows"
        raise NothingSelectedError(f"nothing in these tables could be imported: {reasons}", where=str(paths[0]))
    contents = from_measurements(
        str(paths[0]),
        collected.measurements,
        collected.networks,
        environments=(collected.environment,),
        targets=tuple(collected.targets.values()),
        sources=collected.sources,
        licence=importer.licence,
        provenance=ReleaseProvenance(
            kind=IMPORTED,
            format=format_name,
            source=importer.source,
            attribution=importer.attribution,
            label=importer.label,
        ),
    )
    release = build_from([contents], folder, version=version)
    return Import(release=release, left_out=dict(collected.left_out.most_common()))


@dataclass(slots=True, kw_only=True)
class _Collected:
    """The rows of all tables read so far, and the runtimes that they came from."""

    device: str
    suite: str
    importer: TableImporter
    facts: Mapping[str, Fact]
    environment: Environment | None = None
    targets: dict[Runtime, Target] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    networks: list[NetworkMeasurement] = field(default_factory=list)
    sources: list[RowSource] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def read(self, path: Path) -> None:
        """Add the rows of one file."""
        before = len(self.measurements), len(self.networks)
        for row in self.importer.entries(path):
            if row.left_out:
                self.left_out[row.left_out] += 1
            else:
                self._add(row)
        added = len(self.measurements) - before[0], len(self.networks) - before[1]
        self.sources.append(RowSource(name=path.name, sha256=sha256(path), kernels=added[0], networks=added[1]))

    def _add(self, row: ImportedRow) -> None:
        if self.environment is None:
            hardware = row.runtime.hardware or self.device
            facts = {"hardware": hardware, **facts_of(hardware), **self.facts}
            self.environment = Environment(device=self.device, checked=facts)
        target = self.targets.get(row.runtime)
        if target is None:
            target = self.targets[row.runtime] = self._target(row)
        common: dict[str, Any] = {
            "target": target.name,
            "status": OK,
            "samples": self.importer.samples,
            "processes": 1,
            "scheduling": "unknown",
            "suite": self.suite,
            "environment_id": self.environment.id,
        }
        if row.kernel is not None:
            work = work_of(row.kernel)
            self.measurements.append(Measurement(kernel=row.kernel, work=work, latency_hot_ns=row.latency_ns, **common))
        else:
            self.networks.append(
                NetworkMeasurement(
                    network=row.network,
                    family=row.family,
                    # the kernels that ran were not published; the name stands for them
                    graph_id=content_id(["imported", row.network]),
                    role="training",
                    latency_ns=row.latency_ns,
                    **common,
                )
            )

    def _target(self, row: ImportedRow) -> Target:
        """Make the target of a new runtime. Raises `ContentError` where it contradicts the rows before."""
        runtime = row.runtime
        target = Target(device=self.device, backend=runtime.backend, provider=runtime.provider, version=runtime.version)
        for other, one in self.targets.items():
            if other.hardware != runtime.hardware:
                raise ContentError(
                    f"measured on {runtime.hardware!r}, the rows before on {other.hardware!r}",
                    where=row.where,
                    hint="import each device on its own",
                )
            if one.name == target.name:
                raise ContentError(
                    f"{target.name} of version {runtime.version!r}, the rows before of {other.version!r}",
                    where=row.where,
                    hint="import each version on its own",
                )
        return target


def facts_of(name: str) -> Mapping[str, int]:
    """Look up the facts of the accelerator called `name`; none for an unknown one."""
    for known, (multiprocessors, level1_bytes, last_level_bytes) in _ACCELERATORS.items():
        if known.lower() in name.lower().replace("-", " ").replace("_", " "):
            return {
                "multiprocessors": multiprocessors,
                "level1_bytes": level1_bytes,
                "last_level_bytes": last_level_bytes,
            }
    return {}
