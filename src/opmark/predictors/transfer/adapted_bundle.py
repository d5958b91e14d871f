"""A predictor to keep of a device of which few kernels were measured, made with another device's where that helps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.errors import NothingSelectedError
from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.core.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.target import Target
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.hardware import Hardware, hardware_of
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.single_thread import single_thread
from opmark.predictors.learners.residual import LEAST_ROWS
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.adapted_learner import TRANSFERRED, DonorKind, FittedTransfer, Transfer
from opmark.predictors.model.bundle import Bundle, KindEntry, KindPredictor, Manifest, Origin, versions
from opmark.predictors.model.constants import NetworkConstants
from opmark.predictors.model.intervals import KindErrors, TrainingRange, kind_errors, training_range
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import Table, anything_of, measured_kernels, tables, with_constants
from opmark.predictors.transfer.curve import (
    WITHOUT_DONOR,
    Donor,
    best_of,
    nearest_donor,
    rows_of,
    sampled,
    sides,
    validations,
    weights_of,
)
from opmark.predictors.transfer.methods import METHODS, Adaptation, Rows, drawn_together

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release

# With fewer rows than this, a kind's interval is that of the errors of all kinds.
_OWN_ERRORS_FROM = 20
# The half-width, in nats, of an interval of a kind that was not sampled at all.
_UNSAMPLED_HALF_WIDTH = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Learned:
    """Samples, what was chosen for them, and its predictions of each sample made without its shape group."""

    known: Rows
    adaptation: Adaptation
    held_out_ns: Floats
    donor: Bundle | None


def transferred(
    measurements: Sequence[Measurement],
    target: Target,
    donors: Sequence[Donor],
    *,
    hardware: Hardware,
    origin: Origin,
    samples: int | None = None,
    networks: Sequence[NetworkMeasurement] = (),
    graphs: Mapping[str, Graph] | None = None,
) -> Bundle:
    """A bundle of `target` from `samples` of its rows, or from all, and the donor that diverges least.

    Validation on the samples chooses the method; where that does without the donor, so does the bundle. Kinds without a
    sample come from the donor. Network constants are fitted on training networks where there are some, else those of
    a donor of the same runtime. Raises `NothingSelectedError` where donors, rows, or as many rows as asked for are
    missing.
    """
    everything = list(tables(measurements, hardware).values())
    pool = everything if samples is None else sides(measurements, hardware)[0]
    held = sum(len(table.inputs) for table in pool)
    if not donors or not held:
        raise NothingSelectedError("nothing to transfer between", hint="name a donor, and a target with measurements")
    if samples is not None and samples > held:
        raise NothingSelectedError(
            f"{samples} samples asked for, and {held} rows of {target} to sample from", hint="ask for fewer"
        )
    with single_thread():
        chosen = pool if samples is None else sampled(pool, samples)
        donor, divergence = nearest_donor(chosen, donors)
        known = rows_of(chosen, donor.model)
        scores = validations(known, weights_of(pool, chosen))
        method = best_of(scores)
        helped = method not in WITHOUT_DONOR
        learned = _Learned(
            known=known,
            adaptation=METHODS[method](known),
            held_out_ns=scores[method].predicted_ns,
            donor=donor.model.bundle if helped else None,
        )
        kinds = _kinds(learned)
    given = donor.model.bundle.manifest
    training = [one for one in networks if one.role == "training" and one.status in USABLE and one.latency_ns]
    # what lies between two kernels is the runtime's, and differs less between machines than between runtimes
    alike = given.target.backend == target.backend and not training
    manifest = Manifest(
        target=target,
        estimator=TRANSFERRED,
        hardware=hardware,
        origin=origin,
        kinds={kind: predictor.entry for kind, predictor in kinds.items()},
        anything=anything_of(chosen),
        constants=given.constants if alike else NetworkConstants(),
        versions=versions(),
        transfer=Transfer(
            samples=len(known.hot_ns),
            method=method,
            donor=donor.name if helped else "",
            donor_id=given.id if helped else "",
            divergence=divergence,
            validation={name: one.score for name, one in scores.items()},
            constants=donor.name if alike else "",
        ),
    )
    bundle = Bundle(manifest=manifest, kinds=kinds)
    if not training:
        return bundle
    without = _without(learned)
    return with_constants(
        bundle, networks, graphs or {}, measured=_sampled_only(measurements, without), without=without
    )


def transfer_release(
    release: "Release",
    target_name: str,
    donors: Sequence[Donor],
    *,
    samples: int | None = None,
    graphs: Mapping[str, Graph] | None = None,
) -> Bundle:
    """`transferred` of a release's target. Raises `UnknownNameError` for a target that the release has not."""
    environments = release.manifest.environments
    return transferred(
        release.measurements(target_name),
        release.target(target_name),
        donors,
        hardware=hardware_of(environments[0].checked) if environments else Hardware(),
        origin=Origin(device=release.device, version=release.version, id=release.id),
        samples=samples,
        networks=release.network_measurements(target_name),
        graphs=graphs,
    )


def _kinds(learned: _Learned) -> dict[str, KindPredictor]:
    known = learned.known
    groups = shape_groups([kernel for table in known.tables for kernel in table.inputs.kernels])
    errors = np.log(known.hot_ns / learned.held_out_ns)
    pooled = _own_errors(errors, groups)
    _, rotated = drawn_together(_rotated_above(learned))
    found, start = {}, 0
    for table in known.tables:
        kind, own = table.inputs.kind, slice(start, start + len(table.inputs))
        start = own.stop
        enough = len(table.inputs) >= _OWN_ERRORS_FROM
        entry = KindEntry(
            rows=len(table.inputs),
            features=table.inputs.names,
            range=training_range(table.inputs),
            errors=_own_errors(errors[own], groups[own])
            if enough
            else _at_least(pooled, float(np.abs(errors[own]).max())),
            metrics=all_metrics(table.labels.hot_ns, learned.held_out_ns[own]),
            roofline=_roofline(table, learned),
        )
        if learned.donor is not None and kind in learned.donor.manifest.kinds:
            # shapes are the donor's business: only the difference was learned from the samples
            entry = replace(entry, range=_moved(learned.donor.manifest.kinds[kind], table.inputs.names))
        found[kind] = _predictor(kind, entry, learned, rotated[kind])
    if learned.donor is not None:
        whole = drawn_together(_rotated_above(learned))[0]
        for kind, entry in learned.donor.manifest.kinds.items():
            if kind not in found:
                unsampled = KindEntry(
                    rows=0,
                    features=(),
                    range=_moved(entry, ()),
                    errors=_unsampled(pooled),
                    metrics={},
                    roofline=entry.roofline,
                )
                found[kind] = _predictor(kind, unsampled, learned, whole)
    return dict(sorted(found.items()))


def _own_errors(errors: Floats, groups: Sequence[str]) -> KindErrors:
    return kind_errors(errors, groups, np.zeros(len(errors), dtype=bool))


def _at_least(pooled: KindErrors, half_width: float) -> KindErrors:
    """The errors of all kinds, but an interval that holds the worst sample of this one."""
    wide = max(pooled.half_width, half_width)
    return replace(pooled, half_width=wide, extrapolated_half_width=max(pooled.extrapolated_half_width, 2 * wide))


def _predictor(kind: str, entry: KindEntry, learned: _Learned, rotated_above: float) -> KindPredictor:
    donor = None if learned.donor is None else _donor_kind(kind, learned.donor)
    fitted = FittedTransfer(adapted=learned.adaptation.of_kind(kind), donor=donor, rotated_above=rotated_above)
    return KindPredictor(kind=kind, estimator=TRANSFERRED, entry=entry, texts=fitted.files())


def _donor_kind(kind: str, donor: Bundle) -> DonorKind:
    own = donor.kinds.get(kind)
    return DonorKind(
        kind=kind,
        estimator=donor.manifest.estimator,
        learner=None if own is None else own.fitted,
        features=() if own is None else own.entry.features,
        anything=donor.manifest.anything,
        hardware=donor.manifest.hardware,
    )


def _rotated_above(learned: _Learned) -> dict[str, Floats]:
    """log(rotated / hot) of the samples that have both, above the donor's where there is one; a 0 where none has."""
    found = {}
    for table in learned.known.tables:
        above = np.log(table.labels.rotated_ns / table.labels.hot_ns)
        if learned.donor is not None:
            said = _donor_kind(table.inputs.kind, learned.donor).latencies(table.inputs)
            above = above - np.log(said.rotated_ns / said.hot_ns)
        found[table.inputs.kind] = above[np.isfinite(above)]
    if not any(len(above) for above in found.values()):
        return {kind: np.zeros(1) for kind in found}
    return found


def _roofline(table: Table, learned: _Learned) -> Roofline:
    inputs = table.inputs
    if len(inputs) >= LEAST_ROWS or learned.donor is None or inputs.kind not in learned.donor.manifest.kinds:
        return fit_roofline(inputs.flops, inputs.moved_bytes, table.labels.hot_ns)
    return learned.donor.manifest.kinds[inputs.kind].roofline


def _moved(entry: KindEntry, names: tuple[str, ...]) -> TrainingRange:
    """The donor's range by this device's columns: sizes come first on any hardware, codes after what depends on it."""
    known = [(entry.features[column], codes) for column, codes in entry.range.codes if entry.features]
    moved = tuple((names.index(name), codes) for name, codes in known if name in names)
    return replace(entry.range, codes=moved)


def _unsampled(pooled: KindErrors) -> KindErrors:
    return replace(_at_least(pooled, _UNSAMPLED_HALF_WIDTH), rows=0, groups=0)


def _without(learned: _Learned) -> dict[Kernel, tuple[float, float]]:
    """(hot, rotated) of every sample as predicted without its shape group, the ratio of the two as measured."""
    kernels = [kernel for table in learned.known.tables for kernel in table.inputs.kernels]
    ratio = np.concatenate([table.labels.rotated_ns / table.labels.hot_ns for table in learned.known.tables])
    rotated = learned.held_out_ns * ratio
    return dict(zip(kernels, zip(learned.held_out_ns.tolist(), rotated.tolist(), strict=True), strict=True))


def _sampled_only(
    measurements: Sequence[Measurement], samples: Mapping[Kernel, object]
) -> dict[Kernel, tuple[float, float]]:
    """What was measured of the samples: other rows of the release count as unknown."""
    return {kernel: both for kernel, both in measured_kernels(measurements).items() if kernel in samples}
