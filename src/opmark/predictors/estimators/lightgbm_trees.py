"""The default without its smooth part: LightGBM alone on log(latency / roofline), to see what the mixture buys."""

from dataclasses import dataclass
from typing import ClassVar

from opmark.predictors.estimators.lightgbm import Utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class TreesOnly(Utilisation):
    """Learns log(latency / roofline) by trees alone."""

    summary: ClassVar[str] = "LightGBM alone on log(latency / roofline)"
    smooth: bool = False


ESTIMATOR = TreesOnly()
