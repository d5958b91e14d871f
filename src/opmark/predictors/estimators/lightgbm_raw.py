"""A baseline: LightGBM on the latency itself, as most published predictors do."""

from typing import ClassVar

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import PerLabel, TreeModel, fit_tree_model, tree_model_from


class LightGbmRaw(PerLabel):
    """Learns latency in nanoseconds."""

    summary: ClassVar[str] = "LightGBM on latency"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> TreeModel:
        """Trees of the latency."""
        return fit_tree_model(inputs, latency_ns, logarithmic=False)

    def restore_label(self, text: str) -> TreeModel:
        """From text."""
        return tree_model_from(text)


ESTIMATOR = LightGbmRaw()
