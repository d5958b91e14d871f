"""Ways to predict a device from a few of its kernels and a donor's prediction of every kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Flags, Floats
from opmark.predictors.learners.residual import LEAST_ROWS, fit_residual
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.adapted import LEARNER, Adapted, with_donor
from opmark.predictors.model.training import Table

# How many rows an opinion that a kind lies where all kinds do is worth.
_OPINION_ROWS = 2.0
_RIDGE = 1.0
_RIDGE_MARGIN = 3.0
# Columns of a ridge before those of the kinds: the donor's latency, FLOPs, bytes.
_SIZES = 3
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adaptation:
    """A device as its samples and a donor describe it: kind by kind, and `otherwise` of kinds without a sample."""

    kinds: Mapping[str, Adapted]
    otherwise: Adapted

    def of_kind(self, kind: str) -> Adapted:
        """What is known of one kind."""
        return self.kinds.get(kind, self.otherwise)

    def hot_ns(self, asked: Rows) -> Floats:
        """Predicted latencies, table after table."""
        return np.concatenate(
            [
                self.of_kind(table.inputs.kind).hot_ns(table.inputs, donor)
                for table, donor in zip(asked.tables, asked.donor_ns, strict=True)
            ]
        )


def scratch(known: Rows) -> Adaptation:
    """Our estimator per kind on the samples alone; a kind without one goes by the others' time per FLOP and byte."""
    learner = ESTIMATORS.load(LEARNER)
    kinds = {table.inputs.kind: Adapted(own=learner.fit(table.inputs, table.labels)) for table in known.tables}
    return Adaptation(kinds=kinds, otherwise=Adapted(law=_any_law(known)))


def one_scalar(known: Rows) -> Adaptation:
    """The donor's prediction times one factor."""
    return Adaptation(kinds={}, otherwise=Adapted(intercept=float(np.median(known.above_donor))))


def roofline(known: Rows) -> Adaptation:
    """Time per FLOP, per byte and per call, per kind where it was sampled, else of all kinds; no donor."""
    kinds = {}
    for table in known.tables:
        inputs = table.inputs
        if len(inputs) >= LEAST_ROWS:
            law = fit_roofline(inputs.flops, inputs.moved_bytes, table.labels.hot_ns)
            kinds[inputs.kind] = Adapted(law=law)
    return Adaptation(kinds=kinds, otherwise=Adapted(law=_any_law(known)))


def ridge(known: Rows) -> Adaptation:
    """Ridge regression of log latency on the donor's, on log FLOPs and bytes, and on the kind."""
    kinds = sorted(table.inputs.kind for table in known.tables)
    columns = _ridge_columns(known, kinds)
    target = np.log(known.hot_ns)
    centre, deviation = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)
    standard = (columns - centre) / scale
    gram = standard.T @ standard + _RIDGE * np.eye(standard.shape[1])
    slopes = np.linalg.solve(gram, standard.T @ (target - target.mean())) / scale
    intercept = float(target.mean() - centre @ slopes)
    limits = (float(target.min()) - _RIDGE_MARGIN, float(target.max()) + _RIDGE_MARGIN)
    above, by_flops, by_bytes = slopes[:_SIZES].tolist()

    def of_kind(shift: float) -> Adapted:
        return Adapted(intercept=intercept + shift, slopes=(above, by_flops, by_bytes), limits=limits)

    shifts = dict(zip(kinds, slopes[_SIZES:].tolist(), strict=True))
    return Adaptation(kinds={kind: of_kind(shift) for kind, shift in shifts.items()}, otherwise=of_kind(0.0))


def _ridge_columns(rows: Rows, kinds: list[str]) -> Floats:
    tables = []
    for table, donor in zip(rows.tables, rows.donor_ns, strict=True):
        inputs = table.inputs
        of_kind = np.zeros((len(inputs), len(kinds)))
        of_kind[:, kinds.index(inputs.kind)] = 1.0
        sizes = [np.log(donor), np.log1p(inputs.flops), np.log1p(inputs.moved_bytes)]
        tables.append(np.column_stack([*sizes, of_kind]))
    return np.vstack(tables)


def offsets(known: Rows) -> Adaptation:
    """The donor's prediction times a factor per kind, drawn towards the factor of all kinds where samples are few."""
    whole, of_kind = _offsets(known)
    kinds = {kind: Adapted(intercept=offset) for kind, offset in of_kind.items()}
    return Adaptation(kinds=kinds, otherwise=Adapted(intercept=whole))


def residual(known: Rows) -> Adaptation:
    """Our learner on what is left of the donor's prediction after a factor per kind, where a kind has the rows."""
    whole, of_kind = _offsets(known)
    kinds = {}
    for table, donor in zip(known.tables, known.donor_ns, strict=True):
        kind = table.inputs.kind
        kinds[kind] = Adapted(intercept=of_kind[kind])
        if len(donor) >= LEAST_ROWS:
            left = np.log(table.labels.hot_ns / donor) - of_kind[kind]
            kinds[kind] = Adapted(
                intercept=of_kind[kind],
                residual=fit_residual(with_donor(table.inputs, donor), left),
                residual_limits=(float(left.min()) - _MARGIN, float(left.max()) + _MARGIN),
            )
    return Adaptation(kinds=kinds, otherwise=Adapted(intercept=whole))


def _any_law(known: Rows) -> Roofline:
    inputs = [table.inputs for table in known.tables]
    flops = np.concatenate([one.flops for one in inputs])
    return fit_roofline(flops, np.concatenate([one.moved_bytes for one in inputs]), known.hot_ns)


def _offsets(known: Rows) -> tuple[float, dict[str, float]]:
    """The median log factor of all rows, and each kind's own, drawn towards it."""
    above = {
        table.inputs.kind: np.log(table.labels.hot_ns / donor)
        for table, donor in zip(known.tables, known.donor_ns, strict=True)
    }
    return drawn_together(above)


def drawn_together(values: Mapping[str, Floats]) -> tuple[float, dict[str, float]]:
    """The median of all `values`, and that of each kind, drawn towards it where the kind has few."""
    whole = float(np.median(np.concatenate(list(values.values()))))
    of_kind = {}
    for kind, own in values.items():
        weight = len(own) / (len(own) + _OPINION_ROWS)
        of_kind[kind] = weight * float(np.median(own)) + (1 - weight) * whole if len(own) else whole
    return whole, of_kind


METHODS: Mapping[str, Callable[[Rows], Adaptation]] = {
    "scratch": scratch,
    "donor-residual": residual,
    "donor-offsets": offsets,
    "one-scalar": one_scalar,
    "ridge": ridge,
    "roofline": roofline,
}
