"""A predictor of a device with few measured kernels, made with another device's predictor where that helps."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.errors import NothingSelectedError
from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.predictors.composition.constants import NetworkConstants
from opmark.predictors.composition.host_time import usual_enqueue_ns
from opmark.predictors.inputs.arrays import Floats, single_thread
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.inputs.shape_groups import shape_groups
from opmark.predictors.inputs.tables import Latencies, Table, by_kernel, kernels_of, measured_kernels, tables
from opmark.predictors.learners.residual import LEAST_ROWS
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.adapted_learner import TRANSFERRED, FittedTransfer
from opmark.predictors.model.bundle import Bundle, KindPredictor, versions
from opmark.predictors.model.intervals import KindErrors, kind_errors, training_range
from opmark.predictors.model.manifest import BundleManifest, KindEntry, TrainingRelease, TransferRecord
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import anything_of, origin_of, release_hardware, with_constants
from opmark.predictors.transfer.choosing import (
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
from opmark.predictors.transfer.corrected import donor_kind, moved_range
from opmark.predictors.transfer.methods import METHODS, Adaptation, Rows, drawn_together

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release

# A kind with fewer rows gets the interval of the errors of all kinds.
_OWN_ERRORS_FROM = 20
# The half-width, in nats, of the interval of a kind without samples.
_UNSAMPLED_HALF_WIDTH = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Learned:
    """Samples, the method chosen for them, and its predictions of each sample made without its shape group."""

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
    origin: TrainingRelease,
    samples: int | None = None,
    networks: Sequence[NetworkMeasurement] = (),
    graphs: Mapping[str, Graph] | None = None,
    methods: Collection[str] = METHODS,
) -> Bundle:
    """Make a bundle of `target` from `samples` of its rows, or from all, and the donor that diverges least.

    Validation on the samples chooses one of the `methods`, and the bundle contains the donor only if the method
    needs it. Kinds without a sample come from the donor. Network constants are those of a donor with the same
    runtime, moved by training networks if there are any. Raises `NothingSelectedError` without donors, without
    rows, or with fewer rows than asked for.
    """
    pool = _pool(measurements, target, hardware, samples) if donors else []
    if not pool:
        raise NothingSelectedError("nothing to transfer between", hint="name a donor, and a target with measurements")
    with single_thread():
        chosen = pool if samples is None else sampled(pool, samples)
        nearest, learned, record = _learn(chosen, weights_of(pool, chosen), donors, methods)
        kinds = _kinds(learned)
    given = nearest.model.bundle.manifest
    training = [one for one in networks if one.role == "training" and one.status in USABLE and one.latency_ns]
    # the time between two kernels belongs to the runtime, and differs less between machines than between runtimes
    alike = given.target.backend == target.backend
    inherited = alike and not training
    prior = given.constants if alike and training and given.constants.networks else None
    manifest = BundleManifest(
        target=target,
        estimator=TRANSFERRED,
        hardware=hardware,
        origin=origin,
        kinds={kind: predictor.entry for kind, predictor in kinds.items()},
        anything=anything_of(chosen),
        constants=given.constants if inherited else NetworkConstants(),
        versions=versions(),
        transfer=replace(record, constants=nearest.name if inherited else "", prior=nearest.name if prior else ""),
    )
    bundle = Bundle(manifest=manifest, kinds=kinds)
    if not training:
        return bundle
    without = _without(learned)
    # rows of the release that were not sampled count as unknown
    known = [row for row in measurements if row.kernel in without]
    measured = measured_kernels(known)
    enqueue_ns = usual_enqueue_ns(known)
    return with_constants(
        bundle,
        networks,
        graphs or {},
        measured=measured,
        without=without,
        enqueue_ns=enqueue_ns,
        prior=prior,
    )


def transfer_release(
    release: "Release",
    target_name: str,
    donors: Sequence[Donor],
    *,
    samples: int | None = None,
    graphs: Mapping[str, Graph] | None = None,
    methods: Collection[str] = METHODS,
) -> Bundle:
    """Call `transferred` on a release's target. Raises `UnknownNameError` for a target that the release lacks."""
    return transferred(
        release.measurements(target_name),
        release.target(target_name),
        donors,
        hardware=release_hardware(release),
        origin=origin_of(release),
        samples=samples,
        networks=release.network_measurements(target_name),
        graphs=graphs,
        methods=methods,
    )


def _pool(measurements: Sequence[Measurement], target: Target, hardware: Hardware, samples: int | None) -> list[Table]:
    """List the tables to sample from. Raises `NothingSelectedError` if they have some, but too few rows."""
    pool = list(tables(measurements, hardware).values()) if samples is None else sides(measurements, hardware)[0]
    held = sum(len(table.inputs) for table in pool)
    if samples is not None and 0 < held < samples:
        raise NothingSelectedError(
            f"{samples} samples asked for, and {held} rows of {target} to sample from", hint="ask for fewer"
        )
    return pool


def _learn(
    chosen: Sequence[Table], weights: Floats, donors: Sequence[Donor], methods: Collection[str]
) -> tuple[Donor, _Learned, TransferRecord]:
    """Choose a donor and a method for the samples `chosen`, and learn from them."""
    donor, divergence = nearest_donor(chosen, donors)
    known = rows_of(chosen, donor.model)
    scores = validations(known, weights, methods)
    method = best_of(scores)
    helped = method not in WITHOUT_DONOR
    learned = _Learned(
        known=known,
        adaptation=METHODS[method](known),
        held_out_ns=scores[method].predicted_ns,
        donor=donor.model.bundle if helped else None,
    )
    record = TransferRecord(
        samples=len(known.hot_ns),
        method=method,
        donor=donor.name if helped else "",
        donor_id=donor.model.bundle.manifest.id if helped else "",
        divergence=divergence,
        validation={name: one.score for name, one in scores.items()},
    )
    return donor, learned, record


def _kinds(learned: _Learned) -> dict[str, KindPredictor]:
    known = learned.known
    groups = shape_groups(kernels_of(known.tables))
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
            # the samples taught the difference alone; the range of shapes remains the donor's
            entry = replace(entry, range=moved_range(learned.donor.manifest.kinds[kind], table.inputs.names))
        found[kind] = _predictor(kind, entry, learned, rotated[kind])
    if learned.donor is not None:
        whole = drawn_together(_rotated_above(learned))[0]
        for kind, entry in learned.donor.manifest.kinds.items():
            if kind not in found:
                unsampled = KindEntry(
                    rows=0,
                    features=(),
                    range=moved_range(entry, ()),
                    errors=_unsampled(pooled),
                    metrics={},
                    roofline=entry.roofline,
                )
                found[kind] = _predictor(kind, unsampled, learned, whole)
    return dict(sorted(found.items()))


def _own_errors(errors: Floats, groups: Sequence[str]) -> KindErrors:
    return kind_errors(errors, groups, np.zeros(len(errors), dtype=bool))


def _at_least(pooled: KindErrors, half_width: float) -> KindErrors:
    """Take the errors of all kinds, with an interval wide enough for the worst sample of this one."""
    wide = max(pooled.half_width, half_width)
    return replace(pooled, half_width=wide, extrapolated_half_width=max(pooled.extrapolated_half_width, 2 * wide))


def _predictor(kind: str, entry: KindEntry, learned: _Learned, rotated_above: float) -> KindPredictor:
    donor = None if learned.donor is None else donor_kind(kind, learned.donor)
    fitted = FittedTransfer(adapted=learned.adaptation.of_kind(kind), donor=donor, rotated_above=rotated_above)
    return KindPredictor(kind=kind, estimator=TRANSFERRED, entry=entry, texts=fitted.files())


def _rotated_above(learned: _Learned) -> dict[str, Floats]:
    """Compute log(rotated / hot) of the samples with both labels, minus the donor's; 0 without such samples."""
    found = {}
    for table in learned.known.tables:
        above = np.log(table.labels.rotated_ns / table.labels.hot_ns)
        if learned.donor is not None:
            said = donor_kind(table.inputs.kind, learned.donor).latencies(table.inputs)
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


def _unsampled(pooled: KindErrors) -> KindErrors:
    return replace(_at_least(pooled, _UNSAMPLED_HALF_WIDTH), rows=0, groups=0)


def _without(learned: _Learned) -> dict[Kernel, tuple[float, float]]:
    """Map every sample to (hot, rotated) predicted without its shape group, with their measured ratio."""
    ratio = np.concatenate([table.labels.rotated_ns / table.labels.hot_ns for table in learned.known.tables])
    rotated = learned.held_out_ns * ratio
    return by_kernel(kernels_of(learned.known.tables), Latencies(hot_ns=learned.held_out_ns, rotated_ns=rotated))
