"""A baseline: ridge regression of log latency on log sizes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel

_RIDGE = 1e-3
# Beyond e³ times what was seen, a fitted power law says nothing.
_MARGIN = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearModel(LabelModel):
    """log latency = `intercept` + standardised columns · `slopes`."""

    centre: Floats
    scale: Floats
    slopes: Floats
    intercept: float
    low: float
    high: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """The power law at each kernel."""
        columns = (inputs.matrix[:, : len(self.centre)] - self.centre) / self.scale
        latency: Floats = np.exp(np.clip(self.intercept + columns @ self.slopes, self.low, self.high))
        return latency

    def text(self) -> str:
        """Its coefficients."""
        names = ("centre", "scale", "slopes", "intercept", "low", "high")
        return to_text({name: getattr(self, name) for name in names})


class Linear(PerLabel):
    """Only the kind's own sizes and its work; codes enter as numbers."""

    summary: ClassVar[str] = "ridge on log sizes"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> LinearModel:
        """Solve the normal equations."""
        columns = inputs.matrix[:, : inputs.sizes]
        centre, deviation = columns.mean(axis=0), columns.std(axis=0)
        scale = np.where(deviation > 1e-9, deviation, 1.0)
        standard = (columns - centre) / scale
        target = np.log(latency_ns)
        gram = standard.T @ standard + _RIDGE * len(target) * np.eye(standard.shape[1])
        slopes = np.linalg.solve(gram, standard.T @ (target - target.mean()))
        return LinearModel(
            centre=centre,
            scale=scale,
            slopes=slopes,
            intercept=float(target.mean()),
            low=float(target.min()) - _MARGIN,
            high=float(target.max()) + _MARGIN,
        )

    def restore_label(self, text: str) -> LinearModel:
        """From text."""
        values = from_text(text)
        for name in ("centre", "scale", "slopes"):
            values[name] = np.array(values[name], dtype=np.float64)
        return LinearModel(**values)


ESTIMATOR = Linear()
