"""A baseline: time per FLOP and per byte, without a constant."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.learners.roofline import RooflineEstimator


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsBytes(RooflineEstimator):
    """A roofline without a constant."""

    summary: ClassVar[str] = "FLOPs and bytes"
    terms: tuple[str, ...] = ("flops", "bytes")


ESTIMATOR = FlopsBytes()
