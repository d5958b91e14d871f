"""A baseline: the default without its Gaussian process, to show what mixing both gains."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.learners.utilisation import Utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class TreesOnly(Utilisation):
    """Learns log(latency / roofline) by trees alone."""

    summary: ClassVar[str] = "LightGBM alone on log(latency / roofline)"
    smooth: bool = False


ESTIMATOR = TreesOnly()
