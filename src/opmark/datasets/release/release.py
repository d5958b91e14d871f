"""A release: measurements of one device, immutable, in `datasets/<device>/<version>/`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.cluster import Link
from opmark.core.errors import ContentError
from opmark.core.estimate import median
from opmark.core.files import sha256
from opmark.core.fusion import FusionMeasurement
from opmark.core.host_clock import host_clock
from opmark.core.journal import Journal, read_journal, usual_of
from opmark.core.link import LinkMeasurement, cluster_link
from opmark.core.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.registry import unknown_name
from opmark.core.target import Target
from opmark.datasets.format import manifest
from opmark.datasets.format.columns import (
    FUSION,
    KERNELS,
    LINKS,
    NETWORK_REPEATS,
    NETWORKS,
    TABLES,
    fusion_of,
    link_of,
    measurement_of,
    network_of,
)
from opmark.datasets.format.manifest import Manifest, Source
from opmark.datasets.release import writing as writer
from opmark.datasets.release.contents import Contents, from_measurements
from opmark.datasets.validation import integrity
from opmark.datasets.validation.check import CHECKS, ERROR, Tables

if TYPE_CHECKING:
    import pandas
    import pyarrow

# Machines whose sentinels differ by more are not alike, whatever their facts say.
SENTINEL_TOLERANCE = 0.03


@dataclass(frozen=True, kw_only=True)
class Release:
    """A verified release. Tables are read when they are first asked for; `load` has checked their bytes."""

    path: Path
    manifest: Manifest

    @property
    def device(self) -> str:
        """The device's slug."""
        return self.manifest.device

    @property
    def version(self) -> str:
        """`major.minor.patch`."""
        return self.manifest.version

    @property
    def name(self) -> str:
        """`<device>/<version>`, as commands take it."""
        return f"{self.device}/{self.version}"

    @property
    def id(self) -> str:
        """The hash of the tables."""
        return self.manifest.id

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every target that was measured, sorted by content."""
        return self.manifest.targets

    @cached_property
    def kernels(self) -> "pandas.DataFrame":
        """One row per kernel and target. Raises `ContentError` naming file, row and column of a bad value."""
        return self._frame(KERNELS.name)

    @cached_property
    def networks(self) -> "pandas.DataFrame":
        """One row per network and target. Raises `ContentError` naming file, row and column of a bad value."""
        return self._frame(NETWORKS.name)

    @cached_property
    def tables(self) -> "Mapping[str, pyarrow.Table]":
        """Every table by name, after the essential checks. Raises `ContentError`."""
        tables = {
            name: integrity.read_table(self.path, table)
            for name, table in TABLES.items()
            if self.manifest.entry(table.file) is not None
        }
        checked = Tables(manifest=self.manifest, tables=tables)
        for check in CHECKS:
            if check.essential:
                for finding in check.findings(checked):
                    if finding.level == ERROR:
                        raise finding.error(str(self.path))
        return tables

    def target(self, name: str) -> Target:
        """The target called `name`. Raises `UnknownNameError`."""
        for target in self.targets:
            if target.name == name:
                return target
        raise unknown_name(f"target of {self.name}", name, [target.name for target in self.targets])

    def measurements(self, target_name: str) -> tuple[Measurement, ...]:
        """The kernel trials of one target, repeats not included. Raises `UnknownNameError`, `ContentError`."""
        self.target(target_name)
        return tuple(
            measurement_of(row) for row in self.tables[KERNELS.name].to_pylist() if row["target"] == target_name
        )

    def network_measurements(self, target_name: str) -> tuple[NetworkMeasurement, ...]:
        """The network trials of one target, repeats not included. Raises `UnknownNameError`, `ContentError`."""
        self.target(target_name)
        return tuple(network_of(row) for row in self.tables[NETWORKS.name].to_pylist() if row["target"] == target_name)

    def network_retests(self, target_name: str) -> tuple[tuple[NetworkMeasurement, NetworkMeasurement], ...]:
        """Usable network trials of one target that were repeated, each beside a usable repeat of the same graph."""
        usable = (one for one in self.network_measurements(target_name) if one.status in USABLE)
        first = {(one.network, one.batch, one.graph_id): one for one in usable}
        repeats = (network_of(row) for row in self._rows(NETWORK_REPEATS.name) if row["target"] == target_name)
        pairs = ((first.get((one.network, one.batch, one.graph_id)), one) for one in repeats if one.status in USABLE)
        return tuple((trial, again) for trial, again in pairs if trial is not None)

    def fusions(self, target_name: str) -> tuple[FusionMeasurement, ...]:
        """The pairs of operators of one target, none where that was not measured. Raises `UnknownNameError`."""
        self.target(target_name)
        return tuple(fusion_of(row) for row in self._rows(FUSION.name) if row["target"] == target_name)

    @cached_property
    def links(self) -> tuple[LinkMeasurement, ...]:
        """The links between the machine's devices, none where they were not measured. Raises `ContentError`."""
        return tuple(link_of(row) for row in self._rows(LINKS.name))

    def cluster_link(
        self, source: str, destination: str, *, memory: str = "", rename: Mapping[str, str] | None = None
    ) -> Link:
        """A cluster's link from the one measured from `source` to `destination`, by the fastest memory or that named.

        `rename` says what the cluster calls the two devices. Raises `UnknownNameError` where there is no such link.
        """
        found = [
            link
            for link in self.links
            if (link.source, link.destination) == (source, destination)
            and memory in {"", link.memory}
            and link.status in USABLE
        ]
        if not found:
            known = [f"{link.source} to {link.destination}, {link.memory}" for link in self.links]
            name = f"{source} to {destination}" + (f", {memory}" if memory else "")
            raise unknown_name(f"link of {self.name}", name, known)
        best = max(found, key=lambda link: link.bandwidth_bytes_per_s or 0.0)
        names = rename or {}
        return cluster_link(best, source=names.get(source, ""), destination=names.get(destination, ""))

    def contents(self) -> Contents:
        """The rows, to build another release from."""
        return Contents(
            name=str(self.path),
            environments=self.manifest.environments,
            targets=self.targets,
            rows={name: tuple(table.to_pylist()) for name, table in self.tables.items()},
            sources=self.manifest.sources,
            licence=self.manifest.licence,
            provenance=self.manifest.provenance,
        )

    def _rows(self, name: str) -> "list[dict[str, Any]]":
        return self.tables[name].to_pylist() if name in self.tables else []

    def _frame(self, name: str) -> "pandas.DataFrame":
        frame: pandas.DataFrame = self.tables[name].to_pandas()
        return frame


def load(folder: Path) -> Release:
    """The release in `folder`, its manifest and every checksum verified.

    Raises `ContentError` naming the file: absent, changed, of another schema.
    """
    found = manifest.read(folder)
    for finding in integrity.findings(folder, found):
        if finding.level == ERROR:
            raise finding.error(str(folder))
    return Release(path=folder, manifest=found)


def build(journals: Sequence[Path], folder: Path, *, version: str | None = None) -> Release:
    """A new release in `folder/<device>/<version>` (default: the next version) from journals of one machine.

    The same journals in any order give the same bytes; all clocks are told beside one usual clock. Raises
    `ContentError` naming journal and line, or the facts or sentinels on which journals differ; `UsageError` where the
    version is; nothing half-written is left.
    """
    found = [read_journal(path) for path in journals]
    usual_ns = usual_of(found)
    for journal in found:
        _check_alike(journal, usual_ns)
    parts = [_contents(journal.beside(usual_ns)) for journal in found]
    return load(writer.write(parts, folder, version=version))


def build_from(parts: Sequence[Contents], folder: Path, *, version: str | None = None) -> Release:
    """A new release from rows that are at hand already; see `build` and `contents.from_measurements`."""
    return load(writer.write(list(parts), folder, version=version))


def _check_alike(journal: Journal, usual_ns: Mapping[str, Mapping[str, float]]) -> None:
    """A host whose sentinels moved apart is another machine, whatever its facts say; moved alike, another clock."""
    for target, reading in journal.usual_ns.items():
        off = host_clock(reading, usual_ns[target]).off
        if off > SENTINEL_TOLERANCE:
            raise ContentError(
                f"its sentinels on {target} are {off:.1%} off those of the other journals beside what a clock explains",
                where=str(journal.path),
                hint="the machines are not alike; build a release of its own from it",
            )


def journal_contents(path: Path) -> Contents:
    """The rows of one journal. Raises `ContentError` naming file and line or row and column."""
    return _contents(read_journal(path))


def _contents(journal: Journal) -> Contents:
    source = Source(
        name=journal.path.name,
        sha256=sha256(journal.path),
        kernels=len(journal.measurements),
        networks=len(journal.networks),
        sentinels_ns=_sentinels_ns(journal),
        sampled_s=_sampled_s(journal),
    )
    return from_measurements(
        str(journal.path),
        journal.measurements,
        journal.networks,
        environments=(journal.environment,),
        targets=journal.targets,
        sources=(source,),
        fusions=journal.fusions,
        links=journal.links,
    )


def _sentinels_ns(journal: Journal) -> dict[str, float]:
    readings: dict[str, list[float]] = defaultdict(list)
    for item in journal.sentinels:
        if item.accepted:
            for name, latency_ns in item.ns.items():
                readings[f"{item.target}/{name}"].append(latency_ns)
    return {name: median(readings[name]) for name in sorted(readings)}


def _sampled_s(journal: Journal) -> dict[str, float]:
    """Seconds inside samples by target."""
    spent: dict[str, float] = defaultdict(float)
    for key, blocks in journal.blocks.items():
        spent[journal.trials[key].target] += sum(sum(block.ns) * block.calls for block in blocks) / 1e9
    return {target: round(spent[target], 1) for target in sorted(spent)}
