"""A release: measurements of one device, immutable, in `datasets/<device>/<version>/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.hardware.cluster import Link
from opmark.core.hardware.link import LinkMeasurement, cluster_link
from opmark.core.hardware.target import Target
from opmark.core.kernels.fusion import FusionMeasurement
from opmark.core.measurements.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.registry import unknown_name
from opmark.datasets.format.columns import (
    FUSION,
    KERNEL_REPEATS,
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
from opmark.datasets.format.manifest import ReleaseManifest, read
from opmark.datasets.release.contents import Contents
from opmark.datasets.release.pooling import POOLED_COLUMNS, pooled
from opmark.datasets.validation.check import CHECKS, ERROR, ReleaseTables
from opmark.datasets.validation.validate import file_findings, read_table

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True, kw_only=True)
class Release:
    """A verified release. ReleaseTables are read on first use; `load` has checked their bytes."""

    path: Path
    manifest: ReleaseManifest

    @property
    def device(self) -> str:
        """The device's name in paths."""
        return self.manifest.device

    @property
    def version(self) -> str:
        """`major.minor.patch`."""
        return self.manifest.version

    @property
    def name(self) -> str:
        """`<device>/<version>`, as in commands."""
        return f"{self.device}/{self.version}"

    @property
    def id(self) -> str:
        """The hash of the tables."""
        return self.manifest.id

    @property
    def targets(self) -> tuple[Target, ...]:
        """The measured targets, sorted by content."""
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
        """The tables by name, after the essential checks. Raises `ContentError`."""
        tables = {
            name: read_table(self.path, table)
            for name, table in TABLES.items()
            if self.manifest.entry(table.file) is not None
        }
        checked = ReleaseTables(manifest=self.manifest, tables=tables)
        for check in CHECKS:
            if check.essential:
                for finding in check.findings(checked):
                    if finding.level == ERROR:
                        raise finding.error(str(self.path))
        return tables

    def target(self, name: str) -> Target:
        """Look up a target by name. Raises `UnknownNameError`."""
        for target in self.targets:
            if target.name == name:
                return target
        raise unknown_name(f"target of {self.name}", name, [target.name for target in self.targets])

    def measurements(self, target_name: str) -> tuple[Measurement, ...]:
        """List the kernels of one target, each with the label of all its trials (`pooling`).

        Raises `UnknownNameError`, `ContentError`.
        """
        self.target(target_name)
        repeats = self._rows(KERNEL_REPEATS.name, target_name, POOLED_COLUMNS)
        return tuple(map(measurement_of, pooled(self._rows(KERNELS.name, target_name), repeats)))

    def network_measurements(self, target_name: str) -> tuple[NetworkMeasurement, ...]:
        """List the network trials of one target without repeats. Raises `UnknownNameError`, `ContentError`."""
        self.target(target_name)
        return tuple(map(network_of, self._rows(NETWORKS.name, target_name)))

    def network_retests(self, target_name: str) -> tuple[tuple[NetworkMeasurement, NetworkMeasurement], ...]:
        """Pair usable network trials of one target with usable repeats of the same graph."""
        usable = (one for one in self.network_measurements(target_name) if one.status in USABLE)
        first = {(one.network, one.batch, one.graph_id): one for one in usable}
        repeats = map(network_of, self._rows(NETWORK_REPEATS.name, target_name))
        pairs = ((first.get((one.network, one.batch, one.graph_id)), one) for one in repeats if one.status in USABLE)
        return tuple((trial, again) for trial, again in pairs if trial is not None)

    def fusions(self, target_name: str) -> tuple[FusionMeasurement, ...]:
        """List the pairs of operators of one target, if they were measured. Raises `UnknownNameError`."""
        self.target(target_name)
        return tuple(map(fusion_of, self._rows(FUSION.name, target_name)))

    @cached_property
    def links(self) -> tuple[LinkMeasurement, ...]:
        """The links between the machine's devices, if they were measured. Raises `ContentError`."""
        return tuple(link_of(row) for row in self._rows(LINKS.name))

    def cluster_link(
        self, source: str, destination: str, *, memory: str = "", rename: Mapping[str, str] | None = None
    ) -> Link:
        """Make a cluster's link from the one measured from `source` to `destination`, by `memory` or the fastest.

        `rename` maps both devices to their names in the cluster. Raises `UnknownNameError` without such a link.
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
        """Collect the rows, to build another release from them."""
        return Contents(
            name=str(self.path),
            environments=self.manifest.environments,
            targets=self.targets,
            rows={name: tuple(table.to_pylist()) for name, table in self.tables.items()},
            sources=self.manifest.sources,
            licence=self.manifest.licence,
            provenance=self.manifest.provenance,
        )

    def _rows(self, name: str, target_name: str = "", columns: Sequence[str] = ()) -> "list[dict[str, Any]]":
        """The rows of a table that may be absent, of one target and only with `columns` where these are named."""
        if name not in self.tables:
            return []
        table = self.tables[name]
        if target_name:
            from pyarrow import compute

            table = table.filter(compute.equal(table.column("target"), target_name))
        if columns:
            table = table.select(columns)
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    def _frame(self, name: str) -> "pandas.DataFrame":
        frame: pandas.DataFrame = self.tables[name].to_pandas()
        return frame


def load(folder: Path) -> Release:
    """Read the release in `folder` and verify its manifest and every checksum.

    Raises `ContentError` naming a file that is absent, changed, or of another schema.
    """
    found = read(folder)
    for finding in file_findings(folder, found):
        if finding.level == ERROR:
            raise finding.error(str(folder))
    return Release(path=folder, manifest=found)
