"""Finished parts of an evaluation, kept in files, so that an interrupted evaluation goes on where it was.

A part is one estimator on the rows of one kind in one split, or on the unseen networks. Its file counts only for the
same release, graphs, learning code and packages; otherwise the part is judged again, and its file replaced.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError
from opmark.core.files import json_text, write_sealed
from opmark.core.measurements.measurement import USABLE
from opmark.core.schema import load
from opmark.models.origin import code_id, installed
from opmark.predictors.inputs.shape_groups import PARTS as FOLDS
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.judging.splits import NETWORKS_UNSEEN, SHAPE_GROUP
from opmark.predictors.model.adapted_learner import TRANSFERRED

SCHEMA = 1
# The code and the packages that decide what an estimator learns and how it is judged.
_CODE = ("core/kernels", "core/measurements", "kinds", "predictors")
_PACKAGES = ("lightgbm", "numpy", "scipy")
_Numbers = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPart:
    """One estimator on one kind of a split; `kind` is empty for whole networks. `work` is proportional to its time."""

    estimator: str
    split: str
    kind: str
    work: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    kinds: tuple[str, ...]
    measured_ns: _Numbers
    predicted_ns: _Numbers
    variation: _Numbers
    deviation: _Numbers | None
    families: tuple[str, ...]
    low_ns: _Numbers | None
    high_ns: _Numbers | None
    kernel_sum_ns: _Numbers | None
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    key: str
    judged: _Columns | None


def parts_of(evidence: Evidence, estimators: Sequence[str], splits: Sequence[str]) -> list[JudgedPart]:
    """List the parts of an evaluation: of each split and kind, every estimator, so that the pace of a few tells all."""
    rows = Counter(row.kernel.kind for row in evidence.measurements if row.status in USABLE)
    parts: list[JudgedPart] = []
    for split in splits:
        # Both labels are learned for whole networks, hot ones alone for kernels.
        networks = {"": 2.0 * rows.total()}
        folds = FOLDS if split == SHAPE_GROUP else 1
        work = networks if split == NETWORKS_UNSEEN else {kind: float(folds * rows[kind]) for kind in sorted(rows)}
        parts += [
            JudgedPart(estimator=name, split=split, kind=kind, work=max(1.0, amount))
            for kind, amount in work.items()
            for name in estimators
        ]
    return list(dict.fromkeys(parts))


class FinishedParts:
    """The parts of one target's evaluation that are stored below `folder`."""

    def __init__(self, folder: Path, evidence: Evidence) -> None:
        self.folder = folder / evidence.target.device / (evidence.release or "none") / evidence.target.name
        self._donor_id = evidence.donor.manifest.id if evidence.donor else ""
        self._evidence_key = content_id(
            [
                evidence.release,
                evidence.target,
                evidence.hardware,
                sorted((name, graph.id) for name, graph in evidence.graphs.items()),
                code_id(*_CODE),
                [installed(package) for package in _PACKAGES],
            ]
        )

    def known(self, parts: Sequence[JudgedPart]) -> dict[JudgedPart, Judged | None]:
        """The results of those `parts` that were judged before; None for a part without rows to judge."""
        found = {}
        for part in parts:
            path = self._path(part)
            try:
                stored = load(path, _File, schema=SCHEMA, sealed=True)
            except ContentError:  # absent, damaged, or of another version: it is judged again
                continue
            if stored.key == self._key(part):
                found[part] = None if stored.judged is None else _judged(stored.judged)
        return found

    def keep(self, part: JudgedPart, judged: Judged | None) -> None:
        """Store the result of a part, whole or not at all. Raises `OpMarkError` where it cannot be written."""
        columns = None if judged is None else {one.name: _listed(getattr(judged, one.name)) for one in fields(judged)}
        try:
            text = json_text({"schema": SCHEMA, "key": self._key(part), "judged": columns})
        except ValueError:  # an infinite latency has no JSON; the part is judged again
            return
        write_sealed(self._path(part), text)

    def _key(self, part: JudgedPart) -> str:
        donor = self._donor_id if part.estimator == TRANSFERRED else ""
        return content_id([self._evidence_key, donor, part.estimator, part.split, part.kind])

    def _path(self, part: JudgedPart) -> Path:
        return self.folder / part.estimator / part.split / f"{part.kind or 'networks'}.json.gz"


def _listed(column: Any) -> Any:
    """The JSON form of a column; unknown numbers (NaN) become null."""
    if not isinstance(column, np.ndarray):
        return plain(column)
    return [None if np.isnan(value) else value for value in column.tolist()]


def _judged(columns: _Columns) -> Judged:
    texts = {"kinds", "families", "classes"}
    found: dict[str, Any] = {one.name: getattr(columns, one.name) for one in fields(columns)}
    for name in found.keys() - texts:
        if found[name] is not None:
            found[name] = np.array(found[name], dtype=np.float64)
    return Judged(**found)
