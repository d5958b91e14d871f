"""A baseline: a constant, and time per FLOP."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.learners.roofline import RooflineEstimator


@dataclass(frozen=True, slots=True, kw_only=True)
class Flops(RooflineEstimator):
    """A roofline without bytes."""

    summary: ClassVar[str] = "FLOPs and a constant"
    terms: tuple[str, ...] = ("flops", "constant")


ESTIMATOR = Flops()
