"""Ways to predict a device from a few of its kernels and a donor's prediction of every kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from opmark.predictors.arrays import Flags, Floats
from opmark.predictors.estimator import Latencies
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.features import Inputs
from opmark.predictors.residual import LEAST_ROWS, fit_residual
from opmark.predictors.roofline import fit_roofline
from opmark.predictors.train import Table

# How many rows an opinion that a kind lies where all kinds do is worth.
_OPINION_ROWS = 2.0
_RIDGE = 1.0
# A donor's prediction and the residual on it are believed this many nats beyond what was seen.
_MARGIN = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Kernels of several kinds, a table each, and what the donor predicts for each of their rows."""

    tables: tuple[Table, ...]
    donor_ns: tuple[Floats, ...]

    @property
    def hot_ns(self) -> Floats:
        """Measured latencies, table after table."""
        return np.concatenate([table.labels.hot_ns for table in self.tables])

    @property
    def above_donor(self) -> Floats:
        """log(measured / donor), table after table."""
        return np.log(self.hot_ns / np.concatenate(self.donor_ns))

    def take(self, rows: Flags) -> "Rows":
        """Some rows, by a mask over all tables; tables without any fall away."""
        tables, donors, start = [], [], 0
        for table, donor in zip(self.tables, self.donor_ns, strict=True):
            own = rows[start : start + len(donor)]
            start += len(donor)
            if own.any():
                tables.append(table.take(own))
                donors.append(donor[own])
        return Rows(tables=tuple(tables), donor_ns=tuple(donors))

    def of_kind(self, kind: str) -> tuple[Table, Floats] | None:
        """The table of one kind and the donor's predictions."""
        for table, donor in zip(self.tables, self.donor_ns, strict=True):
            if table.inputs.kind == kind:
                return table, donor
        return None


def scratch(known: Rows, asked: Rows) -> Floats:
    """Our estimator per kind on the samples alone; a kind without one goes by the others' time per FLOP and byte."""
    learner = ESTIMATORS.load("lightgbm")
    inputs = [table.inputs for table in known.tables]
    anything = fit_roofline(
        np.concatenate([one.flops for one in inputs]),
        np.concatenate([one.moved_bytes for one in inputs]),
        known.hot_ns,
    )
    found = []
    for table in asked.tables:
        own = known.of_kind(table.inputs.kind)
        if own is None:
            found.append(anything.latency_ns(table.inputs.flops, table.inputs.moved_bytes))
        else:
            labels = own[0].labels
            unknown = np.full(len(labels.hot_ns), np.nan)
            fitted = learner.fit(own[0].inputs, Latencies(hot_ns=labels.hot_ns, rotated_ns=unknown))
            found.append(fitted.predict(table.inputs).hot_ns)
    return np.concatenate(found)


def one_scalar(known: Rows, asked: Rows) -> Floats:
    """The donor's prediction times one factor."""
    factor = float(np.exp(np.median(known.above_donor)))
    return factor * np.concatenate(asked.donor_ns)


def roofline(known: Rows, asked: Rows) -> Floats:
    """Time per FLOP, per byte and per call, per kind where it was sampled, else of all kinds; no donor."""
    everything = known.tables
    anything = fit_roofline(
        np.concatenate([table.inputs.flops for table in everything]),
        np.concatenate([table.inputs.moved_bytes for table in everything]),
        known.hot_ns,
    )
    found = []
    for table in asked.tables:
        own = known.of_kind(table.inputs.kind)
        law = anything
        if own is not None and len(own[1]) >= LEAST_ROWS:
            law = fit_roofline(own[0].inputs.flops, own[0].inputs.moved_bytes, own[0].labels.hot_ns)
        found.append(law.latency_ns(table.inputs.flops, table.inputs.moved_bytes))
    return np.concatenate(found)


def ridge(known: Rows, asked: Rows) -> Floats:
    """Ridge regression of log latency on the donor's, on log FLOPs and bytes, and on the kind."""
    kinds = sorted({table.inputs.kind for table in (*known.tables, *asked.tables)})
    columns, rows = _ridge_columns(known, kinds), _ridge_columns(asked, kinds)
    target = np.log(known.hot_ns)
    centre, deviation = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)
    standard = (columns - centre) / scale
    gram = standard.T @ standard + _RIDGE * np.eye(standard.shape[1])
    slopes = np.linalg.solve(gram, standard.T @ (target - target.mean()))
    predicted = target.mean() + (rows - centre) / scale @ slopes
    latency: Floats = np.exp(np.clip(predicted, target.min() - 3.0, target.max() + 3.0))
    return latency


def _ridge_columns(rows: Rows, kinds: list[str]) -> Floats:
    tables = []
    for table, donor in zip(rows.tables, rows.donor_ns, strict=True):
        inputs = table.inputs
        of_kind = np.zeros((len(inputs), len(kinds)))
        of_kind[:, kinds.index(inputs.kind)] = 1.0
        sizes = [np.log(donor), np.log1p(inputs.flops), np.log1p(inputs.moved_bytes)]
        tables.append(np.column_stack([*sizes, of_kind]))
    return np.vstack(tables)


def offsets(known: Rows, asked: Rows) -> Floats:
    """The donor's prediction times a factor per kind, drawn towards the factor of all kinds where samples are few."""
    whole, of_kind = _offsets(known)
    return np.concatenate(
        [
            donor * np.exp(of_kind.get(table.inputs.kind, whole))
            for table, donor in zip(asked.tables, asked.donor_ns, strict=True)
        ]
    )


def residual(known: Rows, asked: Rows) -> Floats:
    """Our learner on what is left of the donor's prediction after a factor per kind, where a kind has the rows."""
    whole, of_kind = _offsets(known)
    found = []
    for table, donor in zip(asked.tables, asked.donor_ns, strict=True):
        kind = table.inputs.kind
        predicted = np.log(donor) + of_kind.get(kind, whole)
        own = known.of_kind(kind)
        if own is not None and len(own[1]) >= LEAST_ROWS:
            left = np.log(own[0].labels.hot_ns / own[1]) - of_kind[kind]
            learned = fit_residual(_with_donor(own[0].inputs, own[1]), left).predict(_with_donor(table.inputs, donor))
            predicted += np.clip(learned, left.min() - _MARGIN, left.max() + _MARGIN)
        found.append(np.exp(predicted))
    return np.concatenate(found)


def _offsets(known: Rows) -> tuple[float, dict[str, float]]:
    """The median log factor of all rows, and each kind's mean, drawn towards it."""
    whole = float(np.median(known.above_donor))
    of_kind = {}
    for table, donor in zip(known.tables, known.donor_ns, strict=True):
        above = np.log(table.labels.hot_ns / donor)
        weight = len(above) / (len(above) + _OPINION_ROWS)
        of_kind[table.inputs.kind] = weight * float(np.median(above)) + (1 - weight) * whole
    return whole, of_kind


def _with_donor(inputs: Inputs, donor_ns: Floats) -> Inputs:
    """The same kernels with the donor's log latency as one more column."""
    return replace(
        inputs, matrix=np.column_stack([inputs.matrix, np.log(donor_ns)]), names=(*inputs.names, "log_donor_ns")
    )


METHODS: Mapping[str, Callable[[Rows, Rows], Floats]] = {
    "scratch": scratch,
    "donor-residual": residual,
    "donor-offsets": offsets,
    "one-scalar": one_scalar,
    "ridge": ridge,
    "roofline": roofline,
}
