"""A baseline: the utilisation of the nearest measured kernels."""

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, check_shapes, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel
from opmark.predictors.learners.ridge import standardisation
from opmark.predictors.learners.roofline import Roofline, fit_roofline, roofline_from

_NEIGHBOURS = 3
_CHUNK = 2048


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestModel(LabelModel):
    """Measured kernels as points in standardised log sizes, each with its log(latency / roofline)."""

    roofline: Roofline
    centre: Floats
    scale: Floats
    points: Floats
    above: Floats

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Multiply the roofline by the mean over the neighbours, weighted by inverse distance."""
        columns = (inputs.matrix[:, : len(self.centre)] - self.centre) / self.scale
        above = [self._above(columns[start : start + _CHUNK]) for start in range(0, len(columns), _CHUNK)]
        base = self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        latency: Floats = base * np.exp(np.concatenate(above)) if above else base
        return latency

    def _above(self, columns: Floats) -> Floats:
        squared = (columns**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2 * columns @ self.points.T
        count = min(_NEIGHBOURS, len(self.points))
        nearest = np.argpartition(squared, count - 1, axis=1)[:, :count]
        weights = 1 / (np.sqrt(np.maximum(np.take_along_axis(squared, nearest, axis=1), 0)) + 1e-6)
        above: Floats = (weights * self.above[nearest]).sum(axis=1) / weights.sum(axis=1)
        return above

    def text(self) -> str:
        """Write the points."""
        arrays = {name: getattr(self, name) for name in ("centre", "scale", "points", "above")}
        return to_text(arrays | {"roofline": asdict(self.roofline)})


class Nearest(PerLabel):
    """Inverse-distance mean of the three nearest kernels."""

    summary: ClassVar[str] = "utilisation of the three nearest kernels"

    def fit_label(self, inputs: Inputs, latency_ns: Floats) -> NearestModel:
        """Keep every row as a point."""
        roofline = fit_roofline(inputs.flops, inputs.moved_bytes, latency_ns)
        columns = inputs.matrix[:, : inputs.sizes]
        centre, scale = standardisation(columns)
        above = np.log(latency_ns / roofline.latency_ns(inputs.flops, inputs.moved_bytes))
        return NearestModel(
            roofline=roofline, centre=centre, scale=scale, points=(columns - centre) / scale, above=above
        )

    def restore_label(self, text: str) -> NearestModel:
        """Read the points."""
        values = from_text(text)
        roofline = roofline_from(values.pop("roofline"))
        arrays = {name: np.array(value, dtype=np.float64) for name, value in values.items()}
        columns, points = len(arrays["centre"]), len(arrays["above"])
        check_shapes(scale=(arrays["scale"], (columns,)), points=(arrays["points"], (points, columns)))
        if not points or not arrays["scale"].all():
            raise ValueError("no points, or a scale of zero")
        return NearestModel(roofline=roofline, **arrays)


ESTIMATOR = Nearest()
