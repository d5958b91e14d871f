"""One kind of a device known from few samples: what lies above a donor's prediction, or above a law of its own."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats, from_text, to_text
from opmark.predictors.inputs.features import Inputs
from opmark.predictors.learners.estimator import Fitted, Latencies
from opmark.predictors.learners.residual import Residual, residual_from
from opmark.predictors.learners.roofline import Roofline, roofline_from

# How kinds with samples enough are learned without a donor, and what their files start with.
LEARNER = "lightgbm"
_OWN = "own."
_FILE = "adapted.json"
_RESIDUAL = "residual"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapted:
    """log latency = `intercept` + `slopes` · (log base, log(1 + FLOPs), log(1 + bytes)) + a learned residual.

    The base is `law` where there is one, else the donor's latency. The sum before the residual stays within `limits`,
    the residual within `residual_limits`, in nats. `own`, where given, is all there is: a learner without a donor.
    """

    intercept: float = 0.0
    slopes: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: tuple[float, float] | None = None
    law: Roofline | None = None
    residual: Residual | None = None
    residual_limits: tuple[float, float] = (0.0, 0.0)
    own: Fitted | None = None

    @property
    def asks_donor(self) -> bool:
        """Whether a prediction needs the donor's."""
        return self.own is None and self.law is None

    def hot_ns(self, inputs: Inputs, donor_ns: Floats) -> Floats:
        """The hot latency of each kernel; `donor_ns` are the donor's."""
        if self.own is not None:
            return self.own.predict(inputs).hot_ns
        base = donor_ns if self.law is None else self.law.latency_ns(inputs.flops, inputs.moved_bytes)
        above, by_flops, by_bytes = self.slopes
        total: Floats = self.intercept + above * np.log(base)
        if by_flops or by_bytes:
            total = total + by_flops * np.log1p(inputs.flops) + by_bytes * np.log1p(inputs.moved_bytes)
        if self.limits is not None:
            total = np.clip(total, *self.limits)
        if self.residual is not None:
            total = total + np.clip(self.residual.predict(with_donor(inputs, donor_ns)), *self.residual_limits)
        latency: Floats = np.exp(total)
        return latency

    def latencies(self, inputs: Inputs, donor: Latencies, rotated_above: float) -> Latencies:
        """Both labels; but where the learner is our own, rotated ÷ hot is the donor's times e^`rotated_above`."""
        if self.own is not None:
            return self.own.predict(inputs)
        hot = self.hot_ns(inputs, donor.hot_ns)
        return Latencies(hot_ns=hot, rotated_ns=hot * np.exp(rotated_above) * donor.rotated_ns / donor.hot_ns)

    def files(self) -> dict[str, str]:
        """Text by file name."""
        values = {
            "intercept": self.intercept,
            "slopes": list(self.slopes),
            "limits": None if self.limits is None else list(self.limits),
            "law": None if self.law is None else asdict(self.law),
            "residual_limits": list(self.residual_limits),
        }
        found = {_FILE: to_text(values)}
        if self.residual is not None:
            found |= self.residual.files(_RESIDUAL)
        if self.own is not None:
            found |= {f"{_OWN}{name}": text for name, text in self.own.files().items()}
        return found


def adapted_from(files: Mapping[str, str]) -> Adapted:
    """What `Adapted.files` described. Raises `KeyError`, `ValueError` or `TypeError` on foreign text."""
    values = from_text(files[_FILE])
    above, by_flops, by_bytes = values["slopes"]
    own = starting_with(files, _OWN)
    return Adapted(
        intercept=float(values["intercept"]),
        slopes=(float(above), float(by_flops), float(by_bytes)),
        limits=None if values["limits"] is None else _pair(values["limits"]),
        law=None if values["law"] is None else roofline_from(values["law"]),
        residual=residual_from(files, _RESIDUAL) if f"{_RESIDUAL}-smooth.json" in files else None,
        residual_limits=_pair(values["residual_limits"]),
        own=ESTIMATORS.load(LEARNER).restore(own) if own else None,
    )


def starting_with(files: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The files whose name starts with `prefix`, without it."""
    return {name.removeprefix(prefix): text for name, text in files.items() if name.startswith(prefix)}


def with_donor(inputs: Inputs, donor_ns: Floats) -> Inputs:
    """The same kernels with the donor's log latency as one more column."""
    return replace(
        inputs,
        matrix=np.column_stack([inputs.matrix, np.log(donor_ns)]),
        names=(*inputs.names, "log_donor_ns"),
        smooth=(*inputs.smooth, len(inputs.names)),
    )


def _pair(values: list[float]) -> tuple[float, float]:
    low, high = values
    return float(low), float(high)
