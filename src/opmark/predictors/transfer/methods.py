"""Methods that predict a device from a few of its kernels and a donor's prediction of every kernel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Flags, Floats
from opmark.predictors.inputs.tables import Table
from opmark.predictors.learners.residual import LEAST_ROWS, fit_residual
from opmark.predictors.learners.ridge import fit_ridge
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.adapted_learner import LEARNER, Adapted, with_donor

# The number of rows that the factor of all kinds is worth as a prior of a kind's own factor.
_PRIOR_ROWS = 2.0
_PENALTY = 1.0
# Columns of the ridge before those of the kinds: the donor's latency, FLOPs, bytes.
_SIZES = 3
# The learned residual stays within the range of the samples, widened by this many nats.
_MARGIN = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Kernels of several kinds, one table each, and the donor's prediction of each row."""

    tables: tuple[Table, ...]
    donor_ns: tuple[Floats, ...]

    @property
    def hot_ns(self) -> Floats:
        """The measured latencies, table after table."""
        return np.concatenate([table.labels.hot_ns for table in self.tables])

    @property
    def above_donor(self) -> Floats:
        """The values log(measured / donor), table after table."""
        return np.log(self.hot_ns / np.concatenate(self.donor_ns))

    def take(self, rows: Flags) -> "Rows":
        """Select rows by a mask over all tables; empty tables are dropped."""
        tables, donors, start = [], [], 0
        for table, donor in zip(self.tables, self.donor_ns, strict=True):
            own = rows[start : start + len(donor)]
            start += len(donor)
            if own.any():
                tables.append(table.take(own))
                donors.append(donor[own])
        return Rows(tables=tuple(tables), donor_ns=tuple(donors))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adaptation:
    """A device described by its samples and a donor, kind by kind; `otherwise` serves kinds without a sample."""

    kinds: Mapping[str, Adapted]
    otherwise: Adapted

    def of_kind(self, kind: str) -> Adapted:
        """Look up one kind."""
        return self.kinds.get(kind, self.otherwise)

    def hot_ns(self, asked: Rows) -> Floats:
        """Predict latencies, table after table."""
        return np.concatenate(
            [
                self.of_kind(table.inputs.kind).hot_ns(table.inputs, donor)
                for table, donor in zip(asked.tables, asked.donor_ns, strict=True)
            ]
        )


def scratch(known: Rows) -> Adaptation:
    """Fit our estimator per kind to the samples alone; kinds without a sample follow the roofline of all samples."""
    learner = ESTIMATORS.load(LEARNER)
    kinds = {table.inputs.kind: Adapted(own=learner.fit(table.inputs, table.labels)) for table in known.tables}
    return Adaptation(kinds=kinds, otherwise=Adapted(law=_any_law(known)))


def one_scalar(known: Rows) -> Adaptation:
    """Multiply the donor's prediction by one factor."""
    return Adaptation(kinds={}, otherwise=Adapted(intercept=float(np.median(known.above_donor))))


def roofline(known: Rows) -> Adaptation:
    """Fit a roofline per sampled kind, and one of all samples for other kinds; no donor."""
    kinds = {}
    for table in known.tables:
        inputs = table.inputs
        if len(inputs) >= LEAST_ROWS:
            law = fit_roofline(inputs.flops, inputs.moved_bytes, table.labels.hot_ns)
            kinds[inputs.kind] = Adapted(law=law)
    return Adaptation(kinds=kinds, otherwise=Adapted(law=_any_law(known)))


def ridge(known: Rows) -> Adaptation:
    """Fit a ridge regression of log latency on the donor's, on log FLOPs and bytes, and on the kind."""
    kinds = sorted(table.inputs.kind for table in known.tables)
    fitted = fit_ridge(_ridge_columns(known, kinds), np.log(known.hot_ns), _PENALTY)
    slopes = fitted.slopes / fitted.scale
    intercept = float(fitted.intercept - fitted.centre @ slopes)
    above, by_flops, by_bytes = slopes[:_SIZES].tolist()

    def of_kind(shift: float) -> Adapted:
        return Adapted(
            intercept=intercept + shift, slopes=(above, by_flops, by_bytes), limits=(fitted.low, fitted.high)
        )

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
    """Multiply the donor's prediction by a factor per kind, drawn towards that of all kinds where samples are few."""
    whole, of_kind = _offsets(known)
    kinds = {kind: Adapted(intercept=offset) for kind, offset in of_kind.items()}
    return Adaptation(kinds=kinds, otherwise=Adapted(intercept=whole))


def residual(known: Rows) -> Adaptation:
    """Learn the residual of the donor's prediction after a factor per kind, where a kind has enough rows."""
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
    """Compute the median log factor of all rows, and each kind's own, drawn towards it."""
    above = {
        table.inputs.kind: np.log(table.labels.hot_ns / donor)
        for table, donor in zip(known.tables, known.donor_ns, strict=True)
    }
    return drawn_together(above)


def drawn_together(values: Mapping[str, Floats]) -> tuple[float, dict[str, float]]:
    """Compute the median of all `values`, and that of each kind, drawn towards it where the kind has few values."""
    whole = float(np.median(np.concatenate(list(values.values()))))
    of_kind = {}
    for kind, own in values.items():
        weight = len(own) / (len(own) + _PRIOR_ROWS)
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
# All but learning our own estimator from scratch, which takes most of the time and needs many samples.
QUICK_METHODS = tuple(name for name in METHODS if name != "scratch")
