"""A baseline: non-negative time per FLOP, per byte and per call."""

from dataclasses import asdict, dataclass
from typing import ClassVar

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.roofline import TERMS, Roofline, fit_roofline, roofline_from


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineModel(LabelModel):
    """One roofline."""

    roofline: Roofline

    def latency_ns(self, inputs: Inputs) -> Floats:
        """The roofline at each kernel."""
        return self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)

    def text(self) -> str:
        """Its coefficients."""
        return to_text(asdict(self.roofline))


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineEstimator(PerLabel):
    """Fits the coefficients of `terms` in relative error."""

    summary: ClassVar[str] = "non-negative least squares of FLOPs, bytes and a constant"
    terms: tuple[str, ...] = TERMS

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> RooflineModel:
        """Fit the coefficients."""
        return RooflineModel(roofline=fit_roofline(inputs.flops, inputs.moved_bytes, latency_ns, self.terms))

    def restore_label(self, text: str) -> RooflineModel:
        """From text."""
        return RooflineModel(roofline=roofline_from(from_text(text)))


ESTIMATOR = RooflineEstimator()
