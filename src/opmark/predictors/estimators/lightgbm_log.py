"""A baseline: LightGBM on the logarithm of the latency."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.learners.trees import TreeEstimator


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTrees(TreeEstimator):
    """Learns log latency."""

    summary: ClassVar[str] = "LightGBM on log latency"
    logarithmic: bool = True


ESTIMATOR = LogTrees()
