"""A baseline: LightGBM on the logarithm of the latency."""

from typing import ClassVar

from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import PerLabel, TreeModel, fit_tree_model, tree_model_from


class LightGbmLog(PerLabel):
    """Learns log latency."""

    summary: ClassVar[str] = "LightGBM on log latency"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> TreeModel:
        """Trees of the logarithm."""
        return fit_tree_model(inputs, latency_ns, logarithmic=True)

    def restore_label(self, text: str) -> TreeModel:
        """From text."""
        return tree_model_from(text)


ESTIMATOR = LightGbmLog()
