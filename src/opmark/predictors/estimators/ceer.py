"""A baseline: Ceer's regressions for heavy operators and medians for light ones.

Ubaid Ullah Hafeez, Anshul Gandhi: Empirical Analysis and Modeling of Compute Times of CNN Operations on AWS Cloud.
IISWC 2020. The time of a heavy operator is regressed on the size of its inputs and outputs, linearly or with squares,
whichever fits better; a light operator gets the median of its measurements. The part of the paper available to us does
not say where heavy begins: here a kind is heavy if its mean is above 0.1 ms.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, check_shapes, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel

_HEAVY_NS = 1e5
_DEGREES = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CeerModel(LabelModel):
    """Latency = a polynomial of degree `degree` (0: the median) in sizes over `scale`, at least `least_ns`."""

    degree: int
    scale: Floats
    coefficients: Floats
    least_ns: float

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Compute the polynomial of each kernel."""
        latency: Floats = np.maximum(_design(inputs, self.scale, self.degree) @ self.coefficients, self.least_ns)
        return latency

    def text(self) -> str:
        """Write the coefficients."""
        return to_text({name: getattr(self, name) for name in ("degree", "scale", "coefficients", "least_ns")})


class Ceer(PerLabel):
    """Sizes are the bytes of activations and of weights that a kernel moves."""

    summary: ClassVar[str] = "Ceer: regression on sizes for heavy kinds, the median for light ones"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> CeerModel:
        """Fit least squares of the degree with the better adjusted R²."""
        scale = np.maximum(_sizes(inputs).max(axis=0), 1.0)
        median = np.array([float(np.median(latency_ns))])
        least_ns = float(latency_ns.min()) / 4
        best = CeerModel(degree=0, scale=scale, coefficients=median, least_ns=least_ns)
        if float(latency_ns.mean()) < _HEAVY_NS:
            return best
        highest = -np.inf
        for degree in _DEGREES:
            design = _design(inputs, scale, degree)
            freedom = len(latency_ns) - design.shape[1]
            if freedom < 1:
                continue
            coefficients: Floats = np.asarray(np.linalg.lstsq(design, latency_ns, rcond=None)[0], dtype=np.float64)
            left = float(((latency_ns - design @ coefficients) ** 2).sum()) / freedom
            adjusted = 1 - left / max(float(latency_ns.var(ddof=1)), 1e-300)
            if adjusted > highest:
                highest = adjusted
                best = CeerModel(degree=degree, scale=scale, coefficients=coefficients, least_ns=least_ns)
        return best

    def restore_label(self, text: str) -> CeerModel:
        """Read the coefficients."""
        values = from_text(text)
        scale, coefficients = (np.array(values.pop(name), dtype=np.float64) for name in ("scale", "coefficients"))
        if values["degree"] not in (0, *_DEGREES) or not scale.all():
            raise ValueError("degree or scale is out of range")
        check_shapes(scale=(scale, (2,)), coefficients=(coefficients, (1 + 2 * values["degree"],)))
        return CeerModel(**values, scale=scale, coefficients=coefficients)


def _sizes(inputs: Inputs) -> Floats:
    return np.column_stack([inputs.moved_bytes - inputs.weight_bytes, inputs.weight_bytes])


def _design(inputs: Inputs, scale: Floats, degree: int) -> Floats:
    sizes = _sizes(inputs) / scale
    return np.column_stack([np.ones(len(inputs)), *(sizes**power for power in range(1, degree + 1))])


ESTIMATOR = Ceer()
