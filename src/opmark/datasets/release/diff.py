"""The differences of two releases: added and removed rows, and ratios of latencies of common rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from opmark.core.measurements.environment import Environment
from opmark.core.measurements.measurement import USABLE
from opmark.datasets.format.columns import KERNELS, NETWORKS, TableFormat
from opmark.datasets.format.manifest import common_facts, conflicts
from opmark.datasets.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDifference:
    """One kind of kernels on one target, or its networks, with the `kind` "network".

    The ratios are new latency over old of rows that are usable in both; None without such rows.
    """

    target: str
    kind: str
    added: int
    removed: int
    common: int
    status_changed: int
    compared: int
    ratio_median: float | None = None
    ratio_p5: float | None = None
    ratio_p95: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """All differences. `facts` maps checked facts to their old and new value; `same` means the same rows."""

    old: str
    new: str
    same: bool
    facts: Mapping[str, tuple[Any, Any]]
    groups: tuple[GroupDifference, ...]


def diff(old: Release, new: Release) -> Difference:
    """Compare `new` with `old`. Raises `ContentError` where a table cannot be read."""
    before, after = (
        Environment(device=release.device, checked=common_facts(release.manifest.environments))
        for release in (old, new)
    )
    return Difference(
        old=old.name,
        new=new.name,
        same=old.id == new.id,
        facts=conflicts(before, after),
        groups=(*_groups(old, new, KERNELS, "latency_hot_ns"), *_groups(old, new, NETWORKS, "latency_ns")),
    )


def _groups(old: Release, new: Release, table: TableFormat, label: str) -> list[GroupDifference]:
    before, after = rows_by_identity(old, table), rows_by_identity(new, table)
    keys: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for key in {**before, **after}:
        row = before.get(key) or after[key]
        keys.setdefault((row["target"], row.get("kind", "network")), []).append(key)
    return [
        _group(target, kind, [(before.get(key), after.get(key)) for key in found], label)
        for (target, kind), found in sorted(keys.items())
    ]


def _group(
    target: str, kind: str, pairs: Sequence[tuple[dict[str, Any] | None, dict[str, Any] | None]], label: str
) -> GroupDifference:
    common = [(before, after) for before, after in pairs if before is not None and after is not None]
    ratios = [
        after[label] / before[label]
        for before, after in common
        if before["status"] in USABLE and after["status"] in USABLE
    ]
    low, median, high = (float(value) for value in numpy.quantile(ratios, (0.05, 0.5, 0.95))) if ratios else (None,) * 3
    return GroupDifference(
        target=target,
        kind=kind,
        added=sum(before is None for before, _ in pairs),
        removed=sum(after is None for _, after in pairs),
        common=len(common),
        status_changed=sum(before["status"] != after["status"] for before, after in common),
        compared=len(ratios),
        ratio_median=median,
        ratio_p5=low,
        ratio_p95=high,
    )


def rows_by_identity(release: Release, table: TableFormat) -> dict[tuple[Any, ...], dict[str, Any]]:
    """A table's rows by what identifies them."""
    rows = release.tables[table.name].to_pylist()
    return {tuple(row[name] for name in table.identity): row for row in rows}
