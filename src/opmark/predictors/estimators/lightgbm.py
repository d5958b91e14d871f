"""The default: LightGBM and a smooth surface on log(latency / roofline), and on log(rotated / hot).

Predicting utilisation instead of latency is what extrapolates: the fitted roofline carries the size, the learner only
the efficiency. Few rows are learned mostly by a Gaussian process, many by LightGBM alone; which share each has is
decided on held-out shape groups (`learners.residual`). A kind with fewer than five rows gets its roofline
and its median utilisation.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.by_code_path import fit_by_code_path, restore_by_code_path
from opmark.predictors.learners.by_element_type import fit_by_element_type, restore_by_element_type
from opmark.predictors.learners.estimator import Estimator, Fitted, Latencies
from opmark.predictors.learners.residual import Residual, fit_residual, residual_from
from opmark.predictors.learners.roofline import Roofline, fit_roofline, roofline_from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedUtilisation(Fitted):
    """A roofline, how far hot latencies lie above it, and how far rotated ones lie above hot ones."""

    roofline: Roofline
    above_roofline: Residual
    rotated_above_hot: Residual | None
    made_without: Latencies | None = None

    def predict(self, inputs: Inputs) -> Latencies:
        """Both labels."""
        base = self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        hot = base * np.exp(self.above_roofline.predict(inputs))
        if self.rotated_above_hot is None:
            return Latencies(hot_ns=hot, rotated_ns=hot)
        return Latencies(hot_ns=hot, rotated_ns=hot * np.exp(self.rotated_above_hot.predict(inputs)))

    def files(self) -> dict[str, str]:
        """The roofline, and each label's learners."""
        found = {"roofline.json": to_text(asdict(self.roofline))} | self.above_roofline.files("hot")
        if self.rotated_above_hot is not None:
            found |= self.rotated_above_hot.files("rotated")
        return found

    @property
    def held_out(self) -> Latencies | None:
        """Predictions of the training rows without their own shape group."""
        return self.made_without


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation(Estimator):
    """Learns log(latency / roofline)."""

    summary: ClassVar[str] = "LightGBM and a Gaussian process on log(latency / roofline)"
    smooth: bool = True

    def fit(self, inputs: Inputs, labels: Latencies) -> Fitted:
        """Fit each element type by itself, and code path within it: the roofline, then what is left."""

        def of_one_type(own: Inputs, latencies: Latencies) -> Fitted:
            return fit_by_code_path(own, latencies, self._fit)

        return fit_by_element_type(inputs, labels, of_one_type)

    def restore(self, files: Mapping[str, str]) -> Fitted:
        """What `Fitted.files` described."""

        def of_one_type(own: Mapping[str, str]) -> Fitted:
            return restore_by_code_path(own, self._restore)

        return restore_by_element_type(files, of_one_type)

    def _fit(self, inputs: Inputs, labels: Latencies) -> FittedUtilisation:
        roofline = fit_roofline(inputs.flops, inputs.moved_bytes, labels.hot_ns)
        base = roofline.latency_ns(inputs.flops, inputs.moved_bytes)
        above = fit_residual(inputs, np.log(labels.hot_ns / base), smooth=self.smooth)
        known = np.isfinite(labels.rotated_ns)
        rotated = None
        assert above.held_out is not None
        hot_without = base * np.exp(above.held_out)
        rotated_without = hot_without.copy()
        if known.any():
            target = np.log(labels.rotated_ns[known] / labels.hot_ns[known])
            rotated = fit_residual(inputs.take(known), target, smooth=self.smooth)
            assert rotated.held_out is not None
            rotated_without[known] *= np.exp(rotated.held_out)
        return FittedUtilisation(
            roofline=roofline,
            above_roofline=above,
            rotated_above_hot=rotated,
            made_without=Latencies(hot_ns=hot_without, rotated_ns=rotated_without),
        )

    def _restore(self, files: Mapping[str, str]) -> FittedUtilisation:
        return FittedUtilisation(
            roofline=roofline_from(from_text(files["roofline.json"])),
            above_roofline=residual_from(files, "hot"),
            rotated_above_hot=residual_from(files, "rotated") if "rotated-smooth.json" in files else None,
        )


ESTIMATOR = Utilisation()
