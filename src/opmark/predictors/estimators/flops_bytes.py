"""A baseline: latency grows with FLOPs and bytes, from nothing."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.estimators.roofline import RooflineEstimator


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsBytes(RooflineEstimator):
    """The roofline without a constant."""

    summary: ClassVar[str] = "FLOPs and bytes"
    terms: tuple[str, ...] = ("flops", "bytes")


ESTIMATOR = FlopsBytes()
