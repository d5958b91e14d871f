"""A kind's learner that asks another device's first: how a predictor made by transfer is kept."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from opmark.core.errors import ContentError
from opmark.kinds import KINDS
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import from_text, to_text
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.hardware import Hardware
from opmark.predictors.learners.estimator import Fitted, Latencies
from opmark.predictors.learners.roofline import Roofline, roofline_from
from opmark.predictors.model.adapted import Adapted, adapted_from, starting_with

# What a manifest says instead of an estimator's name.
TRANSFERRED = "transferred"
_FILE = "transfer.json"
_DONOR = "donor."


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How a predictor was made from few samples. `donor` is empty where validation chose to do without.

    `validation` holds, of every method tried, the mean absolute log error (at most log 2) of held-out shape groups of
    the samples; `method` has the least. `constants` names whose network constants were taken over, if anyone's.
    """

    samples: int
    method: str
    donor: str
    donor_id: str
    divergence: float
    validation: Mapping[str, float]
    constants: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DonorKind:
    """What a donor knows of one kind: its learner and that one's columns, or only that bytes take time.

    `hardware` is the donor's.
    """

    kind: str
    estimator: str
    learner: Fitted | None
    features: tuple[str, ...]
    anything: Roofline
    hardware: Hardware

    def latencies(self, inputs: Inputs) -> Latencies:
        """The donor's prediction of the same kernels, from features as on the donor's hardware.

        Raises `ContentError` where this version of OpMark makes other features than those the donor knows.
        """
        if self.learner is None:
            by_bytes = self.anything.latency_ns(np.zeros_like(inputs.moved_bytes), inputs.moved_bytes)
            return Latencies(hot_ns=by_bytes, rotated_ns=by_bytes)
        own = features(inputs.kernels, KINDS.load(self.kind), self.hardware)
        # a donor that was made by transfer itself names no columns of what it did not sample, and checks its donor's
        if self.features and own.names != self.features:
            raise ContentError(
                f"the donor knows other features of kind {self.kind!r} than this version of OpMark makes",
                hint="train the donor again, then transfer again",
            )
        return self.learner.predict(own)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedTransfer(Fitted):
    """One kind: the donor's prediction and how this device differs; `rotated_above` is log of the change of ratio."""

    adapted: Adapted
    donor: DonorKind | None
    rotated_above: float

    def predict(self, inputs: Inputs) -> Latencies:
        """Both labels."""
        ones = np.ones(len(inputs))
        asked = Latencies(hot_ns=ones, rotated_ns=ones) if self.donor is None else self.donor.latencies(inputs)
        return self.adapted.latencies(inputs, asked, self.rotated_above)

    def files(self) -> dict[str, str]:
        """The difference, and everything of the donor that it needs."""
        donor = self.donor
        known = None
        found = self.adapted.files()
        if donor is not None:
            known = {
                "kind": donor.kind,
                "estimator": donor.estimator,
                "features": list(donor.features),
                "anything": asdict(donor.anything),
                "hardware": asdict(donor.hardware),
            }
            if donor.learner is not None:
                found |= {f"{_DONOR}{name}": text for name, text in donor.learner.files().items()}
        return found | {_FILE: to_text({"rotated_above": self.rotated_above, "donor": known})}


def restored(estimator: str, files: Mapping[str, str]) -> Fitted:
    """A kind's learner from its files. Raises `KeyError`, `ValueError` or `TypeError` on foreign text."""
    if estimator != TRANSFERRED:
        return ESTIMATORS.load(estimator).restore(files)
    values = from_text(files[_FILE])
    return FittedTransfer(
        adapted=adapted_from({name: text for name, text in files.items() if not name.startswith(_DONOR)}),
        donor=None if values["donor"] is None else _donor_from(values["donor"], starting_with(files, _DONOR)),
        rotated_above=float(values["rotated_above"]),
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
