"""A baseline: latency grows with FLOPs, from a constant."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.estimators.roofline import RooflineEstimator


@dataclass(frozen=True, slots=True, kw_only=True)
class Flops(RooflineEstimator):
    """The roofline without bytes."""

    summary: ClassVar[str] = "FLOPs and a constant"
    terms: tuple[str, ...] = ("flops", "constant")


ESTIMATOR = Flops()
