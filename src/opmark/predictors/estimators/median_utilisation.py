"""A baseline: the highest measured rates, times one utilisation per kind."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianUtilisation(LabelModel):
    """Latency = max(FLOPs · `ns_per_flop`, bytes · `ns_per_byte`) / `utilisation`, never below `least_ns`."""

    ns_per_flop: float
    ns_per_byte: float
    utilisation: float
    least_ns: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Divide the ideal time by the utilisation."""
        ideal = np.maximum(inputs.flops * self.ns_per_flop, inputs.moved_bytes * self.ns_per_byte)
        latency: Floats = np.maximum(ideal / self.utilisation, self.least_ns)
        return latency

    def text(self) -> str:
        """Write the four numbers."""
        return to_text(asdict(self))


class MedianUtilisationEstimator(PerLabel):
    """Takes the highest rates of the training rows as the peak."""

    summary: ClassVar[str] = "peak rates seen, times the kind's median utilisation"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> MedianUtilisation:
        """Find the highest rates, and the median share of them."""
        ns_per_flop = _least_cost(latency_ns, inputs.flops)
        ns_per_byte = _least_cost(latency_ns, inputs.moved_bytes)
        ideal = np.maximum(inputs.flops * ns_per_flop, inputs.moved_bytes * ns_per_byte)
        utilisation = float(np.median(ideal / latency_ns))
        return MedianUtilisation(
            ns_per_flop=ns_per_flop,
            ns_per_byte=ns_per_byte,
            utilisation=utilisation if utilisation > 0 else 1.0,
            least_ns=float(latency_ns.min()) / 4,
        )

    def restore_label(self, text: str) -> MedianUtilisation:
        """Read the four numbers."""
        return MedianUtilisation(**from_text(text))


def _least_cost(latency_ns: Floats, amount: Floats) -> float:
    some = amount > 0
    return float((latency_ns[some] / amount[some]).min()) if some.any() else 0.0


ESTIMATOR = MedianUtilisationEstimator()
