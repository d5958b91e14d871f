"""A roofline fitted to measurements: non-negative time per FLOP, per byte and per call.

Samuel Williams, Andrew Waterman, David Patterson: Roofline. CACM 52 (2009); here the sum of the terms instead of their
maximum, because the sum has the smaller relative error on CPUs, and no kink.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.per_label import LabelModel, PerLabel

TERMS = ("flops", "bytes", "constant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Latency = FLOPs · `ns_per_flop` + bytes · `ns_per_byte` + `constant_ns`, never below `least_ns`."""

    ns_per_flop: float = 0.0
    ns_per_byte: float = 0.0
    constant_ns: float = 0.0
    least_ns: float = 1.0

    def latency_ns(self, flops: Floats, moved_bytes: Floats) -> Floats:
        """Compute the latency of each kernel."""
        total = flops * self.ns_per_flop + moved_bytes * self.ns_per_byte + self.constant_ns
        latency: Floats = np.maximum(total, self.least_ns)
        return latency


def fit_roofline(flops: Floats, moved_bytes: Floats, latency_ns: Floats, terms: tuple[str, ...] = TERMS) -> Roofline:
    """Fit non-negative coefficients of `terms` with the least squared *relative* error."""
    from scipy.optimize import nnls

    columns = {"flops": flops, "bytes": moved_bytes, "constant": np.ones_like(latency_ns)}
    design = np.column_stack([columns[term] / latency_ns for term in terms])
    # columns differ by ten orders of magnitude; scaling keeps the solver's tolerance meaningful
    scale = np.maximum(np.sqrt((design**2).mean(axis=0)), 1e-300)
    solution, _ = nnls(design / scale, np.ones(len(latency_ns)))
    fitted = dict(zip(terms, (solution / scale).tolist(), strict=True))
    return Roofline(
        ns_per_flop=fitted.get("flops", 0.0),
        ns_per_byte=fitted.get("bytes", 0.0),
        constant_ns=fitted.get("constant", 0.0),
        # no predicted kernel is far faster than all measured ones
        least_ns=float(latency_ns.min()) / 4,
    )


def roofline_from(values: Mapping[str, Any]) -> Roofline:
    """Read a roofline from its stored fields. Raises `ValueError` on anything else."""
    try:
        return Roofline(**{name: float(value) for name, value in values.items()})
    except TypeError as error:
        raise ValueError(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineModel(LabelModel):
    """One label as a roofline."""

    roofline: Roofline

    def latency_ns(self, inputs: Inputs) -> Floats:
        """Compute the roofline of each kernel."""
        return self.roofline.latency_ns(inputs.flops, inputs.moved_bytes)

    def text(self) -> str:
        """Write the coefficients."""
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
        """Read the coefficients."""
        return RooflineModel(roofline=roofline_from(from_text(text)))
