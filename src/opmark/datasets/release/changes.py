"""The rows that became slower or faster between two releases, the largest changes first."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.measurements.measurement import DOUBTFUL, LOW_QUALITY, USABLE
from opmark.core.reading import parse_json
from opmark.datasets.format.columns import KERNELS, NETWORKS, TableFormat
from opmark.datasets.release.diff import rows_by_identity
from opmark.datasets.release.release import Release

# A change below this share is noise even for a measurement of good quality.
NOISE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A kernel or network (kind "network") of both releases; `doubtful` where one of its two labels is."""

    target: str
    kind: str
    name: str
    old_ns: float
    new_ns: float
    doubtful: bool

    @property
    def ratio(self) -> float:
        """The new latency over the old one."""
        return self.new_ns / self.old_ns

    @property
    def extra_ns(self) -> float:
        """The new latency minus the old one."""
        return self.new_ns - self.old_ns


def row_changes(old: Release, new: Release) -> list[RowChange]:
    """Every row that is usable in both releases, the largest ratio first. Raises `ContentError` as `diff` does."""
    found = [*_changes(old, new, KERNELS, "latency_hot_ns"), *_changes(old, new, NETWORKS, "latency_ns")]
    return sorted(found, key=lambda one: (-one.ratio, one.target, one.kind, one.name))


def _changes(old: Release, new: Release, table: TableFormat, label: str) -> list[RowChange]:
    before, after = rows_by_identity(old, table), rows_by_identity(new, table)
    changes = []
    for key in before.keys() & after.keys():
        first, second = before[key], after[key]
        if first["status"] in USABLE and second["status"] in USABLE and first[label] and second[label]:
            changes.append(
                RowChange(
                    target=first["target"],
                    kind=first.get("kind", "network"),
                    name=_name(first),
                    old_ns=first[label],
                    new_ns=second[label],
                    doubtful=bool({DOUBTFUL, LOW_QUALITY} & {first["status"], second["status"]}),
                )
            )
    return changes


def _name(row: Mapping[str, Any]) -> str:
    """A network's name, or a kernel's parameters that are not empty, zero or false."""
    if "parameters" not in row:
        return str(row["network"])
    parameters: dict[str, Any] = parse_json(row["parameters"].encode(), "parameters")
    return ", ".join(
        f"{name}={json.dumps(value) if isinstance(value, list) else value}"
        for name, value in parameters.items()
        if value not in (None, 0, "", [], False)
    )
