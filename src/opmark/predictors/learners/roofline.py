"""A roofline fitted to measurements: non-negative time per FLOP, per byte and per call.

Samuel Williams, Andrew Waterman, David Patterson: Roofline. CACM 52 (2009); here the sum of the terms, not their
maximum, because the sum has the smaller relative error on CPUs and no kink.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opmark.predictors.inputs.arrays import Floats

TERMS = ("flops", "bytes", "constant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Latency = FLOPs · `ns_per_flop` + bytes · `ns_per_byte` + `constant_ns`, never below `least_ns`."""

    ns_per_flop: float = 0.0
    ns_per_byte: float = 0.0
    constant_ns: float = 0.0
    least_ns: float = 1.0

    def latency_ns(self, flops: Floats, moved_bytes: Floats) -> Floats:
        """The latency of each kernel."""
        total = flops * self.ns_per_flop + moved_bytes * self.ns_per_byte + self.constant_ns
        latency: Floats = np.maximum(total, self.least_ns)
        return latency


def fit_roofline(flops: Floats, moved_bytes: Floats, latency_ns: Floats, terms: tuple[str, ...] = TERMS) -> Roofline:
    """The non-negative coefficients of `terms` with the least squared *relative* error on the rows given."""
    from scipy.optimize import nnls

    columns = {"flops": flops, "bytes": moved_bytes, "constant": np.ones_like(latency_ns)}
    design = np.column_stack([columns[term] / latency_ns for term in terms])
    # columns differ by ten orders of magnitude; scaled ones keep the solver's tolerance meaningful
    scale = np.maximum(np.sqrt((design**2).mean(axis=0)), 1e-300)
    solution, _ = nnls(design / scale, np.ones(len(latency_ns)))
    fitted = dict(zip(terms, (solution / scale).tolist(), strict=True))
    return Roofline(
        ns_per_flop=fitted.get("flops", 0.0),
        ns_per_byte=fitted.get("bytes", 0.0),
        constant_ns=fitted.get("constant", 0.0),
        # what no measured kernel undercuts by far, no predicted one does
        least_ns=float(latency_ns.min()) / 4,
    )


def roofline_from(values: Mapping[str, Any]) -> Roofline:
    """A roofline from its fields as stored. Raises `ValueError` on anything else."""
    try:
        return Roofline(**{name: float(value) for name, value in values.items()})
    except TypeError as error:
        raise ValueError(str(error)) from error
