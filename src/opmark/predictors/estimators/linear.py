"""A baseline: ridge regression of log latency on log sizes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.ridge import Ridge, fit_ridge

_PENALTY = 1e-3
_ARRAYS = ("centre", "scale", "slopes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerLaw(LabelModel):
    """Log latency as a ridge regression."""

    ridge: Ridge

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Compute the power law of each kernel."""
        latency: Floats = np.exp(self.ridge.predict(inputs.matrix[:, : len(self.ridge.centre)]))
        return latency

    def text(self) -> str:
        """Write the coefficients."""
        return to_text({name: getattr(self.ridge, name) for name in (*_ARRAYS, "intercept", "low", "high")})


class Linear(PerLabel):
    """Only the kind's own sizes and its work; codes enter as numbers."""

    summary: ClassVar[str] = "ridge on log sizes"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> PowerLaw:
        """Fit the coefficients."""
        columns = inputs.matrix[:, : inputs.sizes]
        return PowerLaw(ridge=fit_ridge(columns, np.log(latency_ns), _PENALTY * len(latency_ns)))

    def restore_label(self, text: str) -> PowerLaw:
        """Read the coefficients."""
        values = from_text(text)
        values |= {name: np.array(values[name], dtype=np.float64) for name in _ARRAYS}
        return PowerLaw(ridge=Ridge(**values))


ESTIMATOR = Linear()
