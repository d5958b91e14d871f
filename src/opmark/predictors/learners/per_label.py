"""Estimators that learn each label on its own: most baselines."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.estimator import Estimator, Fitted, Latencies

_LEAST_ROTATED = 3


class LabelModel(ABC):
    """One label of one kind."""

    @abstractmethod
    def latency_ns(self, inputs: Inputs) -> Floats:
        """Positive latencies."""

    @abstractmethod
    def text(self) -> str:
        """Everything needed to make it again."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLabels(Fitted):
    """A model per label; where too few rotated labels were measured, the hot one times their median ratio."""

    hot: LabelModel
    rotated: LabelModel | None
    ratio: float

    def predict(self, inputs: Inputs) -> Latencies:
        """Both labels."""
        hot = self.hot.latency_ns(inputs)
        rotated = hot * self.ratio if self.rotated is None else self.rotated.latency_ns(inputs)
        return Latencies(hot_ns=hot, rotated_ns=rotated)

    def files(self) -> dict[str, str]:
        """One file per label, and the ratio."""
        found = {"hot.txt": self.hot.text(), "labels.json": to_text({"ratio": self.ratio})}
        if self.rotated is not None:
            found["rotated.txt"] = self.rotated.text()
        return found


class PerLabel(Estimator):
    """An estimator made of one model per label."""

    summary: ClassVar[str]

    @abstractmethod
    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> LabelModel:
        """Learn one label."""

    @abstractmethod
    def restore_label(self, text: str) -> LabelModel:
        """What `LabelModel.text` described."""

    def fit(self, inputs: Inputs, labels: Latencies) -> FittedLabels:
        """Learn both labels."""
        known = np.isfinite(labels.rotated_ns)
        enough = int(known.sum()) >= _LEAST_ROTATED
        ratio = float(np.median(labels.rotated_ns[known] / labels.hot_ns[known])) if known.any() else 1.0
        return FittedLabels(
            hot=self.fit_label(inputs, labels.hot_ns),
            rotated=self.fit_label(inputs.take(known), labels.rotated_ns[known]) if enough else None,
            ratio=ratio,
        )

    def restore(self, files: Mapping[str, str]) -> FittedLabels:
        """Both labels from their files."""
        rotated = files.get("rotated.txt")
        return FittedLabels(
            hot=self.restore_label(files["hot.txt"]),
            rotated=None if rotated is None else self.restore_label(rotated),
            ratio=float(from_text(files["labels.json"])["ratio"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeModel(LabelModel):
    """A LightGBM ensemble of a latency or of its logarithm."""

    booster: Any
    source: str
    logarithmic: bool
    least_ns: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Latencies from the trees, never below a quarter of the least one seen."""
        from opmark.predictors.learners.trees import predict_trees

        values = predict_trees(self.booster, inputs.matrix) if len(inputs) else np.empty(0)
        latency: Floats = np.maximum(np.exp(values) if self.logarithmic else values, self.least_ns)
        return latency

    def text(self) -> str:
        """The trees, after a first line with the rest."""
        return to_text({"logarithmic": self.logarithmic, "least_ns": self.least_ns}) + self.source


def fit_tree_model(inputs: Inputs, latency_ns: Floats, *, logarithmic: bool) -> TreeModel:
    """Trees of the latency or its logarithm, the rounds chosen on held-out shape groups."""
    from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
    from opmark.predictors.learners.trees import booster_from, fit_trees

    folds = group_folds(shape_groups(inputs.kernels), 5)
    source, _ = fit_trees(inputs.matrix, np.log(latency_ns) if logarithmic else latency_ns, inputs.categorical, folds)
    return TreeModel(
        booster=booster_from(source), source=source, logarithmic=logarithmic, least_ns=float(latency_ns.min()) / 4
    )


def tree_model_from(text: str) -> TreeModel:
    """What `TreeModel.text` described. Raises `KeyError` or `ValueError` on foreign text."""
    from opmark.predictors.learners.trees import booster_from

    first, _, source = text.partition("\n")
    values = from_text(first)
    return TreeModel(booster=booster_from(source), source=source, **values)
