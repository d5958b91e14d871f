"""An estimator that learns how much longer a kernel takes than on another device, where that tells more.

A few thousand measured kernels show few of the cliffs at which a library changes its code. A predictor of a device with
many more knows most of them, because the library chooses by shape there too. The ratio of both devices' latencies is
smoother than either (decision 0053). LitePred (Feng et al., NSDI 2024) learns such a difference from few samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies, tables
from opmark.predictors.learners.estimator import Estimator, Fitted
from opmark.predictors.model.adapted_learner import (
    LEARNER,
    TRANSFERRED,
    Adapted,
    DonorKind,
    FittedTransfer,
    beside_donor,
    divided,
    multiplied,
    restored,
)
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.intervals import TrainingRange
from opmark.predictors.model.manifest import CORRECTED, KindEntry, TransferRecord
from opmark.predictors.model.training import Beginning, release_hardware, silent, train
from opmark.predictors.transfer.choosing import USELESS, Donor, divergence

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Corrected(Estimator):
    """Learns latencies divided by those that `donor` predicts; held-out shape groups of each kind decide on it."""

    summary: ClassVar[str] = "the usual estimator on log(latency / latency on another device)"
    donor: Bundle

    def fit(self, inputs: Inputs, labels: Latencies) -> Fitted:
        """Fit with the donor and without it; keep what predicts held-out shape groups better."""
        usual = ESTIMATORS.load(LEARNER)
        own = usual.fit(inputs, labels)
        alone = FittedTransfer(adapted=Adapted(own=own), donor=None, rotated_above=0.0, held_out=own.held_out)
        if inputs.kind not in self.donor.kinds:
            return alone
        kind = donor_kind(inputs.kind, self.donor)
        known = kind.latencies(inputs)
        learned = usual.fit(beside_donor(inputs, known.hot_ns), divided(labels, known))
        corrected = FittedTransfer(
            adapted=Adapted(learned=learned),
            donor=kind,
            rotated_above=0.0,
            held_out=None if learned.held_out is None else multiplied(learned.held_out, known),
            inherited_half_width=self.donor.kinds[inputs.kind].entry.errors.half_width,
        )
        return min((alone, corrected), key=lambda one: _error(one, labels))

    def restore(self, files: Mapping[str, str]) -> Fitted:
        """Read one kind."""
        return restored(TRANSFERRED, files)


def _error(fitted: Fitted, labels: Latencies) -> float:
    if fitted.held_out is None:
        return USELESS
    errors = np.abs(np.log(fitted.held_out.hot_ns / labels.hot_ns))
    return float(np.minimum(errors, USELESS).mean())


def donor_kind(kind: str, donor: Bundle) -> DonorKind:
    """Take one kind from the bundle `donor`; a kind that it lacks has the donor's time per byte."""
    own = donor.kinds.get(kind)
    return DonorKind(
        kind=kind,
        estimator=donor.manifest.estimator,
        learner=None if own is None else own.fitted,
        features=() if own is None else own.entry.features,
        anything=donor.manifest.anything,
        hardware=donor.manifest.hardware,
    )


def moved_range(entry: KindEntry, names: tuple[str, ...]) -> TrainingRange:
    """Translate the donor's range to this device's columns; columns of codes follow those that depend on hardware."""
    known = [(entry.features[column], codes) for column, codes in entry.range.codes if entry.features]
    moved = tuple((names.index(name), codes) for name, codes in known if name in names)
    return replace(entry.range, codes=moved)


def with_donor_ranges(bundle: Bundle, donor: Bundle) -> Bundle:
    """Give corrected kinds of `bundle` the ranges of the `donor`: their own rows teach the ratio alone."""
    kinds = dict(bundle.kinds)
    for kind, own in bundle.kinds.items():
        if isinstance(own.fitted, FittedTransfer) and own.fitted.donor is not None:
            known = moved_range(donor.kinds[kind].entry, own.entry.features)
            kinds[kind] = replace(own, entry=replace(own.entry, range=known))
    entries = {kind: own.entry for kind, own in kinds.items()}
    return Bundle(manifest=replace(bundle.manifest, kinds=entries), kinds=kinds)


def train_corrected(
    release: "Release",
    target_name: str,
    donor: Donor,
    *,
    graphs: Mapping[str, Graph] | None = None,
    begun: Beginning = silent,
) -> Bundle:
    """Train a bundle for one target of `release` with a predictor of another device; see `training.train`.

    Raises `UnknownNameError` for a target that the release lacks, `NothingSelectedError` without usable rows.
    """
    corrected = Corrected(donor=donor.model.bundle)
    bundle = train(release, target_name, estimator=TRANSFERRED, learner=corrected, graphs=graphs, begun=begun)
    bundle = with_donor_ranges(bundle, donor.model.bundle)
    rows = list(tables(release.measurements(target_name), release_hardware(release)).values())
    record = TransferRecord(
        samples=sum(entry.rows for entry in bundle.manifest.kinds.values()),
        method=CORRECTED,
        donor=donor.name,
        donor_id=donor.model.bundle.manifest.id,
        divergence=divergence(rows, donor.model),
        validation={},
    )
    return Bundle(manifest=replace(bundle.manifest, transfer=record), kinds=bundle.kinds)
