"""The rows of a release before they are written, gathered from journals and releases of one machine."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.canonical import canonical_json, plain
from opmark.core.errors import ContentError, NothingSelectedError
from opmark.core.hardware.link import LinkMeasurement
from opmark.core.hardware.target import Target
from opmark.core.kernels.fusion import FusionMeasurement
from opmark.core.measurements.environment import Environment
from opmark.core.measurements.measurement import FAILED, STATUSES, Measurement, NetworkMeasurement
from opmark.core.units import format_count
from opmark.datasets.format.columns import (
    FUSION,
    KERNEL_REPEATS,
    KERNELS,
    LINKS,
    NETWORK_REPEATS,
    NETWORKS,
    TABLES,
    TableFormat,
    fusion_row,
    kernel_row,
    link_row,
    network_row,
    number_problem,
    table_of,
)
from opmark.datasets.format.manifest import LICENCE, OURS, ReleaseProvenance, RowSource, conflicts
from opmark.datasets.validation.peaks import REFUSED_ABOVE, peaks, rates

Row = dict[str, Any]
_UNPLACED = {"journal": None, "measured_at": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The rows of every table by name, and the environments and targets that they were measured on.

    `name` is the name in error messages: the path of a journal or release.
    """

    name: str
    environments: tuple[Environment, ...]
    targets: tuple[Target, ...]
    rows: Mapping[str, tuple[Row, ...]]
    sources: tuple[RowSource, ...] = ()
    licence: str = LICENCE
    provenance: ReleaseProvenance = OURS

    @property
    def device(self) -> str:
        """The device's name in paths."""
        return self.environments[0].device

    def table(self, table: TableFormat) -> tuple[Row, ...]:
        """Look up the rows of one table."""
        return self.rows.get(table.name, ())


def from_measurements(
    name: str,
    measurements: Iterable[Measurement],
    networks: Iterable[NetworkMeasurement],
    *,
    environments: Iterable[Environment],
    targets: Iterable[Target],
    sources: Iterable[RowSource] = (),
    licence: str = LICENCE,
    provenance: ReleaseProvenance = OURS,
    fusions: Iterable[FusionMeasurement] = (),
    links: Iterable[LinkMeasurement] = (),
) -> Contents:
    """Collect the measurements of one run. Raises `ContentError` naming row and column of an unusable number."""
    measured = (
        (KERNELS, map(kernel_row, measurements)),
        (NETWORKS, map(network_row, networks)),
        (FUSION, map(fusion_row, fusions)),
        (LINKS, map(link_row, links)),
    )
    rows = {table.name: tuple(table_of(table, found).to_pylist()) for table, found in measured}
    for table_name, found in rows.items():
        for number, row in enumerate(found):
            for column in TABLES[table_name].columns:
                problem = number_problem(column, row[column.name])
                if problem:
                    raise ContentError(problem, where=f"{name}: {table_name} row {number}: {column.name}")
    return Contents(
        name=name,
        environments=tuple(environments),
        targets=tuple(targets),
        rows=rows,
        sources=tuple(sources),
        licence=licence,
        provenance=provenance,
    )


def gather(parts: Sequence[Contents]) -> Contents:
    """Join all parts; their order does not matter.

    Of repeated trials of a kernel or network, the most reliable one is kept, whatever its value, and the others become
    repeats. Of a pair of operators or a link, only the most reliable trial is kept. Raises `ContentError` naming the
    facts on which two parts differ, `NothingSelectedError` without any row.
    """
    if not parts:
        raise NothingSelectedError("nothing to build a release from", hint="name at least one journal")
    for first, other in itertools.combinations(parts, 2):
        _agree(first, other)
    rows: dict[str, tuple[Row, ...]] = {}
    for best, repeats in ((KERNELS, KERNEL_REPEATS), (NETWORKS, NETWORK_REPEATS)):
        trials = [row for part in parts for table in (best, repeats) for row in part.table(table)]
        rows[best.name], rows[repeats.name] = _best_and_others(best, trials)
    for table in (FUSION, LINKS):
        rows[table.name], _ = _best_and_others(table, (row for part in parts for row in part.table(table)))
    if not any(rows.values()):
        names = ", ".join(part.name for part in parts)
        raise NothingSelectedError("nothing was measured yet", where=names, hint="run the suite first")
    return Contents(
        name=parts[0].name,
        environments=_distinct(part.environments for part in parts),
        targets=_distinct(part.targets for part in parts),
        rows=rows,
        sources=_distinct(part.sources for part in parts),
        licence=parts[0].licence,
        provenance=parts[0].provenance,
    )


def without_impossible(contents: Contents) -> Contents:
    """Refuse labels above four times the measured peak: their rows become `failed`, with a reason.

    The rows stay in the release, so that it shows everything that was measured; the samples stay in the journal.
    """
    kernels = contents.table(KERNELS)
    while True:
        ceilings = {(peak.target, peak.quantity, peak.dtype): peak.rate for peak in peaks(kernels)}
        checked = tuple(_refused(row, ceilings) for row in kernels)
        if checked == kernels:
            return replace(contents, rows={**contents.rows, KERNELS.name: kernels})
        kernels = checked


def _refused(row: Row, ceilings: Mapping[tuple[str, str, str], float]) -> Row:
    for group, rate in rates(row):
        if rate > REFUSED_ABOVE * ceilings[group]:
            reason = f"refused: {group[1]} of {format_count(rate)} is {rate / ceilings[group]:.1f} times the peak"
            names = ("latency_hot_ns", "latency_rotated_ns", "standard_error_hot", "standard_error_rotated")
            lost = dict.fromkeys(names)
            lists = {"hot_quantiles_ns": (), "rotated_quantiles_ns": ()}
            return {**row, "status": FAILED, "reason": reason, **lost, **lists}
    return row


def _best_and_others(table: TableFormat, trials: Iterable[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in trials:
        alike[tuple(row[name] for name in table.identity)].append(row)
    best, others = [], []
    for identity in sorted(alike):
        group = alike[identity]
        if len(group) > 1:
            # by content, because a trial may come from both a journal and a release made of it; older releases
            # do not tell the place of its samples
            distinct = {canonical_json({**row, **_UNPLACED}): row for row in sorted(group, key=_journal)}
            group = [row for _, row in sorted(distinct.items(), key=lambda item: (_preference(item[1]), item[0]))]
        best.append(group[0])
        others += group[1:]
    return tuple(best), tuple(others)


def _journal(row: Row) -> str:
    return row.get("journal") or ""


def _preference(row: Row) -> tuple[Any, ...]:
    """Rank a trial by reliability, not by its value, which would bias the label.

    Its status counts first, then its standard error, the variation between its processes, and its numbers of processes
    and samples.
    """
    error = row.get("standard_error_hot", row.get("standard_error"))
    known = math.inf if error is None else error
    variation = row.get("between_process_variation")
    apart = math.inf if variation is None else variation
    clean = row["clean_fraction"] or 0.0
    return (STATUSES.index(row["status"]), known, apart, -row["processes"], -row["samples"], -clean)


def _agree(first: Contents, other: Contents) -> None:
    if first.device != other.device:
        raise ContentError(
            f"measured on {other.device!r}, not on {first.device!r} as {first.name}",
            where=other.name,
            hint="one release describes one device",
        )
    if (first.licence, first.provenance) != (other.licence, other.provenance):
        raise ContentError(
            f"its rows come from elsewhere, or under another licence, than those of {first.name}",
            where=other.name,
            hint="build a release of its own from it",
        )
    for ours, theirs in itertools.product(first.environments, other.environments):
        differing = conflicts(ours, theirs)
        if not differing:
            continue
        facts = "; ".join(f"{fact} is {there!r}, not {here!r}" for fact, (here, there) in differing.items())
        raise ContentError(
            f"the environment differs from that of {first.name}: {facts}",
            where=other.name,
            hint="build a release of its own from it",
        )
    known = {target.name: target for target in first.targets}
    for target in other.targets:
        same = known.get(target.name, target)
        if same != target:
            ours, theirs = plain(same), plain(target)
            facts = "; ".join(
                f"{key} is {theirs[key]!r}, not {ours[key]!r}" for key in ours if ours[key] != theirs[key]
            )
            raise ContentError(f"{target.name} differs from that of {first.name}: {facts}", where=other.name)


def _distinct(groups: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    found = {canonical_json(item): item for group in groups for item in group}
    return tuple(found[key] for key in sorted(found))
