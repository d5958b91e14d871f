"""Learners of one kind that correct the predictor of another device, or a law of their own."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from opmark.core.errors import ContentError
from opmark.kinds import KINDS
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Hardware, Inputs, features
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.by_element_type import starting_with
from opmark.predictors.learners.estimator import Fitted
from opmark.predictors.learners.residual import Residual, residual_from
from opmark.predictors.learners.roofline import Roofline, roofline_from

# The estimator of kinds with enough samples to learn from without a donor, and the prefix of its files.
LEARNER = "lightgbm"
_OWN, _LEARNED = "own.", "learned."
# The name that manifests give instead of an estimator's.
TRANSFERRED = "transferred"
_FILE = "adapted.json"
_RESIDUAL = "residual"
_TRANSFER_FILE = "transfer.json"
_DONOR = "donor."
# A learner of latencies divided by the donor's sees a kernel that takes as long on both devices as one of this latency.
_EQUAL_NS = 1e5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapted:
    """log latency = `intercept` + `slopes` · (log base, log(1 + FLOPs), log(1 + bytes)) + a learned residual.

    The base is `law` if given, else the donor's latency. The sum without the residual stays within `limits`, the
    residual within `residual_limits`, in nats. If `own` is given, it alone predicts, without a donor; `learned` tells
    both latencies divided by the donor's.
    """

    intercept: float = 0.0
    slopes: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] | None = None
    law: Roofline | None = None
    residual: Residual | None = None
    residual_limits: tuple[float, float] = (0.0, 0.0)
    own: Fitted | None = None
    learned: Fitted | None = None

    def hot_ns(self, inputs: Inputs, donor_ns: Floats) -> Floats:
        """Predict the hot latency of each kernel from the donor's, `donor_ns`."""
        if self.own is not None:
            return self.own.predict(inputs).hot_ns
        if self.learned is not None:
            return donor_ns / _EQUAL_NS * self.learned.predict(beside_donor(inputs, donor_ns)).hot_ns
        base = donor_ns if self.law is None else self.law.latency_ns(inputs.flops, inputs.moved_bytes)
        above, by_flops, by_bytes = self.slopes
        total: Floats = self.intercept + above * np.log(base)
        if by_flops or by_bytes:
            total = total + by_flops * np.log1p(inputs.flops) + by_bytes * np.log1p(inputs.moved_bytes)
        if self.limits is not None:
            total = np.clip(total, *self.limits)
        if self.residual is not None:
            total = total + np.clip(self.residual.predict(with_donor(inputs, donor_ns)), *self.residual_limits)
        latency: Floats = np.exp(total)
        return latency

    def latencies(self, inputs: Inputs, donor: Latencies, rotated_above: float) -> Latencies:
        """Predict both labels; without `own` or `learned`, rotated ÷ hot is the donor's times e^`rotated_above`."""
        if self.own is not None:
            return self.own.predict(inputs)
        if self.learned is not None:
            times = self.learned.predict(beside_donor(inputs, donor.hot_ns))
            return multiplied(times, donor)
        hot = self.hot_ns(inputs, donor.hot_ns)
        return Latencies(hot_ns=hot, rotated_ns=hot * np.exp(rotated_above) * donor.rotated_ns / donor.hot_ns)

    def files(self) -> dict[str, str]:
        """Write everything as text by file name."""
        values = {
            "intercept": self.intercept,
            "slopes": list(self.slopes),
            "limits": None if self.limits is None else list(self.limits),
            "law": None if self.law is None else asdict(self.law),
            "residual_limits": list(self.residual_limits),
        }
        found = {_FILE: to_text(values)}
        if self.residual is not None:
            found |= self.residual.files(_RESIDUAL)
        if self.own is not None:
            found |= {f"{_OWN}{name}": text for name, text in self.own.files().items()}
        if self.learned is not None:
            found |= {f"{_LEARNED}{name}": text for name, text in self.learned.files().items()}
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DonorKind:
    """A donor's learner of one kind and the columns of that learner, or only the donor's time per byte.

    `hardware` is the donor's.
    """

    kind: str
    estimator: str
    learner: Fitted | None
    features: tuple[str, ...]
    anything: Roofline
    hardware: Hardware

    def latencies(self, inputs: Inputs) -> Latencies:
        """Predict the same kernels on the donor, from features for the donor's hardware.

        Raises `ContentError` where this version of OpMark makes other features than the donor learned from.
        """
        if self.learner is None:
            by_bytes = self.anything.latency_ns(np.zeros_like(inputs.moved_bytes), inputs.moved_bytes)
            return Latencies(hot_ns=by_bytes, rotated_ns=by_bytes)
        own = features(inputs.kernels, KINDS.load(self.kind), self.hardware)
        # a donor that was itself made by transfer names no columns of kinds without samples; its own donor checks them
        if self.features and own.names != self.features:
            raise ContentError(
                f"the donor knows other features of kind {self.kind!r} than this version of OpMark makes",
                hint="train the donor again, then transfer again",
            )
        return self.learner.predict(own)

    def fields(self) -> dict[str, Any]:
        """All fields except the learner, for storage."""
        return {
            "kind": self.kind,
            "estimator": self.estimator,
            "features": list(self.features),
            "anything": asdict(self.anything),
            "hardware": asdict(self.hardware),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedTransfer(Fitted):
    """One kind: the donor's prediction, the correction for this device, and the log change of rotated ÷ hot."""

    adapted: Adapted
    donor: DonorKind | None
    rotated_above: float
    held_out: Latencies | None = None
    inherited_half_width: float = 0.0

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels."""
        ones = np.ones(len(inputs))
        asked = Latencies(hot_ns=ones, rotated_ns=ones) if self.donor is None else self.donor.latencies(inputs)
        return self.adapted.latencies(inputs, asked, self.rotated_above)

    def files(self) -> dict[str, str]:
        """Write the correction, and the part of the donor that it needs."""
        found = self.adapted.files()
        if self.donor is not None and self.donor.learner is not None:
            found |= {f"{_DONOR}{name}": text for name, text in self.donor.learner.files().items()}
        donor = None if self.donor is None else self.donor.fields()
        return found | {_TRANSFER_FILE: to_text({"rotated_above": self.rotated_above, "donor": donor})}


def restored(estimator: str, files: Mapping[str, str]) -> Fitted:
    """Read a kind's learner from its files. Raises `KeyError`, `ValueError` or `TypeError` on foreign text."""
    if estimator != TRANSFERRED:
        return ESTIMATORS.load(estimator).restore(files)
    values = from_text(files[_TRANSFER_FILE])
    return FittedTransfer(
        adapted=adapted_from({name: text for name, text in files.items() if not name.startswith(_DONOR)}),
        donor=None if values["donor"] is None else _donor_from(values["donor"], starting_with(files, _DONOR)),
        rotated_above=float(values["rotated_above"]),
    )


def adapted_from(files: Mapping[str, str]) -> Adapted:
    """Read the files of `Adapted.files`. Raises `KeyError`, `ValueError` or `TypeError` on foreign text."""
    values = from_text(files[_FILE])
    above, by_flops, by_bytes = values["slopes"]
    own, learned = starting_with(files, _OWN), starting_with(files, _LEARNED)
    return Adapted(
        intercept=float(values["intercept"]),
        slopes=(float(above), float(by_flops), float(by_bytes)),
        limits=None if values["limits"] is None else _pair(values["limits"]),
        law=None if values["law"] is None else roofline_from(values["law"]),
        residual=residual_from(files, _RESIDUAL) if f"{_RESIDUAL}-smooth.json" in files else None,
        residual_limits=_pair(values["residual_limits"]),
        own=ESTIMATORS.load(LEARNER).restore(own) if own else None,
        learned=ESTIMATORS.load(LEARNER).restore(learned) if learned else None,
    )


def with_donor(inputs: Inputs, donor_ns: Floats) -> Inputs:
    """Append the donor's log latency to the columns of the same kernels."""
    return replace(
        inputs,
        matrix=np.column_stack([inputs.matrix, np.log(donor_ns)]),
        names=(*inputs.names, "log_donor_ns"),
        smooth=(*inputs.smooth, len(inputs.names)),
    )


def beside_donor(inputs: Inputs, donor_ns: Floats) -> Inputs:
    """Append the donor's log latency, and leave out the work: the donor's latency stands in for a law of work."""
    none = np.zeros(len(inputs))
    return replace(with_donor(inputs, donor_ns), flops=none, moved_bytes=none)


def divided(measured: Latencies, donor: Latencies) -> Latencies:
    """Divide latencies by the donor's, for a learner of `Adapted.learned`."""
    return replace(
        measured,
        hot_ns=measured.hot_ns / donor.hot_ns * _EQUAL_NS,
        rotated_ns=measured.rotated_ns / donor.rotated_ns * _EQUAL_NS,
    )


def multiplied(times: Latencies, donor: Latencies) -> Latencies:
    """Make latencies of what `divided` made."""
    return Latencies(
        hot_ns=times.hot_ns * donor.hot_ns / _EQUAL_NS, rotated_ns=times.rotated_ns * donor.rotated_ns / _EQUAL_NS
    )


def _donor_from(values: Mapping[str, Any], files: Mapping[str, str]) -> DonorKind:
    hardware = values["hardware"]
    return DonorKind(
        kind=values["kind"],
        estimator=values["estimator"],
        learner=restored(values["estimator"], files) if files else None,
        features=tuple(values["features"]),
        anything=roofline_from(values["anything"]),
        hardware=Hardware(
            vector_bytes=int(hardware["vector_bytes"]),
            cache_bytes=tuple(int(size) for size in hardware["cache_bytes"]),
            multiprocessors=int(hardware["multiprocessors"]),
        ),
    )


def _pair(values: list[float]) -> tuple[float, float]:
    low, high = values
    return float(low), float(high)
