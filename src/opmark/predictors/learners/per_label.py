"""Estimators that fit one model per label, as most baselines do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.tables import Latencies
from opmark.predictors.learners.estimator import Estimator, Fitted

_LEAST_ROTATED = 3


class LabelModel(ABC):
    """A model of one label of one kind."""

    @abstractmethod
    def latency_ns(self, inputs: Inputs) -> Floats:
        """Predict positive latencies."""

    @abstractmethod
    def text(self) -> str:
        """Write the model as text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLabels(Fitted):
    """A model per label. Without a model of rotated latencies, they are the hot ones times `ratio`."""

    hot: LabelModel
    rotated: LabelModel | None
    ratio: float

    def predict(self, inputs: Inputs) -> Latencies:
        """Predict both labels."""
        hot = self.hot.latency_ns(inputs)
        rotated = hot * self.ratio if self.rotated is None else self.rotated.latency_ns(inputs)
        return Latencies(hot_ns=hot, rotated_ns=rotated)

    def files(self) -> dict[str, str]:
        """Write one file per label, and the ratio."""
        found = {"hot.txt": self.hot.text(), "labels.json": to_text({"ratio": self.ratio})}
        if self.rotated is not None:
            found["rotated.txt"] = self.rotated.text()
        return found


class PerLabel(Estimator):
    """An estimator made of one model per label."""

    summary: ClassVar[str]

    @abstractmethod
    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> LabelModel:
        """Fit one label."""

    @abstractmethod
    def restore_label(self, text: str) -> LabelModel:
        """Read the text of `LabelModel.text`."""

    def fit(self, inputs: Inputs, labels: Latencies) -> FittedLabels:
        """Fit both labels; too few rotated ones give their median ratio to the hot ones instead of a model."""
        known = np.isfinite(labels.rotated_ns)
        enough = int(known.sum()) >= _LEAST_ROTATED
        ratio = float(np.median(labels.rotated_ns[known] / labels.hot_ns[known])) if known.any() else 1.0
        return FittedLabels(
            hot=self.fit_label(inputs, labels.hot_ns),
            rotated=self.fit_label(inputs.take(known), labels.rotated_ns[known]) if enough else None,
            ratio=ratio,
        )

    def restore(self, files: Mapping[str, str]) -> FittedLabels:
        """Read both labels from their files."""
        rotated = files.get("rotated.txt")
        return FittedLabels(
            hot=self.restore_label(files["hot.txt"]),
            rotated=None if rotated is None else self.restore_label(rotated),
            ratio=float(from_text(files["labels.json"])["ratio"]),
        )
