"""A baseline: the default's Gaussian process alone, to show what mixing it with trees gains."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.inputs.shape_groups import group_folds, shape_groups
from opmark.predictors.learners.gaussian_process import GaussianProcess, fit_process, process_from
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.roofline import Roofline, fit_roofline, roofline_from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessModel(LabelModel):
    """A roofline, and a process of log ratios to it that are kept within [`low`, `high`]."""

    roofline: Roofline
    process: GaussianProcess
    low: float
    high: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Multiply the roofline by the process."""
        base = self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        latency: Floats = base * np.exp(np.clip(self.process.predict(inputs.matrix), self.low, self.high))
        return latency

    def text(self) -> str:
        """Write the roofline and the process."""
        values = {"low": self.low, "high": self.high, "roofline": asdict(self.roofline)}
        return to_text(values | {"process": to_text(self.process.values())})


class Process(PerLabel):
    """Codes enter as numbers."""

    summary: ClassVar[str] = "a Gaussian process on log(latency / roofline)"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> ProcessModel:
        """Fit the roofline, then the process."""
        roofline = fit_roofline(inputs.flops, inputs.moved_bytes, latency_ns)
        above = np.log(latency_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
        process, _ = fit_process(inputs.matrix, above, group_folds(shape_groups(inputs.kernels), 5))
        return ProcessModel(
            roofline=roofline, process=process, low=float(above.min()) - 0.25, high=float(above.max()) + 0.25
        )

    def restore_label(self, text: str) -> ProcessModel:
        """Read the roofline and the process."""
        values = from_text(text)
        return ProcessModel(
            roofline=roofline_from(values["roofline"]),
            process=process_from(from_text(values["process"])),
            low=float(values["low"]),
            high=float(values["high"]),
        )


ESTIMATOR = Process()
