"""The time in which a host enqueues the calls of a network on a device of its own, such as a GPU.

The device works while the host enqueues later calls, so that a network takes the longer of both times (decision 0055).
The host's is share · Σ usual time to enqueue a kernel of that kind + views · view + Python calls · Python call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opmark.core.measurements.measurement import USABLE, Measurement
from opmark.predictors.inputs.arrays import Floats

# A device that takes so much longer than its kernels, and so large a share of the host's time, had to wait for a host
# that waits for results in between.
_BEYOND_KERNELS, _WAITING_SHARE = 1.25, 0.55
# The prior of share, view (ns) and Python call (ns), and its deviations.
_PRIOR = np.array([0.8, 3_000.0, 500.0])
_DEVIATIONS = np.array([0.3, 3_000.0, 1_000.0])
# The expected relative error of a host's time, and how many networks the prior of that error is worth.
_USUAL_DEVIATION = 0.15
_OPINION_NETWORKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCalls:
    """The work of the host for one network: calls of each kind, calls of views, Python functions that it enters."""

    kinds: Mapping[str, int]
    views: int
    python_calls: float

    @property
    def kernels(self) -> int:
        """The number of calls that give the device work."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConstants:
    """The constants of a host; `enqueue_ns` has the usual time per kind, and `deviation` is the error in nats."""

    enqueue_ns: Mapping[str, float] = field(default_factory=dict)
    share: float = float(_PRIOR[0])
    view_ns: float = float(_PRIOR[1])
    python_call_ns: float = float(_PRIOR[2])
    deviation: float = _USUAL_DEVIATION

    def time_ns(self, calls: HostCalls) -> float:
        """Compute the host's time for one network."""
        point = np.array([self.share, self.view_ns, self.python_call_ns])
        return float(_columns(calls, self.enqueue_ns) @ point)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHost:
    """The work of one network's host, and the measured times of host and device."""

    family: str
    calls: HostCalls
    host_ns: float
    device_ns: float

    def waits(self, kernels_ns: float) -> bool:
        """Return True if the host seems to wait for results in between, so that `device_ns` contains its time.

        `kernels_ns` is the sum of the kernels.
        """
        return self.device_ns > max(_BEYOND_KERNELS * kernels_ns, _WAITING_SHARE * self.host_ns)


def usual_enqueue_ns(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Find the median time to enqueue a kernel of each kind."""
    found: dict[str, list[float]] = {}
    for row in measurements:
        if row.status in USABLE and row.overhead_ns is not None:
            found.setdefault(row.kernel.kind, []).append(row.overhead_ns)
    return {kind: float(np.median(values)) for kind, values in sorted(found.items())}


def fit_host(measured: Sequence[MeasuredHost], enqueue_ns: Mapping[str, float]) -> HostConstants:
    """Fit share, view and Python call to the relative errors of the hosts' times, with weak priors.

    `deviation` is that of networks whose family was left out.
    """
    own = HostConstants(enqueue_ns=dict(enqueue_ns))
    if not measured:
        return own
    rows = np.array([_columns(one.calls, enqueue_ns) for one in measured])
    taken = np.array([one.host_ns for one in measured])
    families = np.array([one.family for one in measured])
    squares = [_OPINION_NETWORKS * _USUAL_DEVIATION**2]
    for family in sorted(set(families)):
        left = families == family
        point = _solved(rows[~left], taken[~left])
        squares += list(np.log(taken[left] / (rows[left] @ point)) ** 2)
    share, view_ns, python_call_ns = (float(value) for value in _solved(rows, taken))
    return HostConstants(
        enqueue_ns=own.enqueue_ns,
        share=share,
        view_ns=view_ns,
        python_call_ns=python_call_ns,
        deviation=float(np.sqrt(sum(squares) / (len(measured) + _OPINION_NETWORKS))),
    )


def _columns(calls: HostCalls, enqueue_ns: Mapping[str, float]) -> Floats:
    usual = float(np.median(list(enqueue_ns.values()))) if enqueue_ns else 0.0
    enqueued = sum(count * enqueue_ns.get(kind, usual) for kind, count in calls.kinds.items())
    return np.array([enqueued, float(calls.views), calls.python_calls])


def _solved(rows: Floats, taken: Floats) -> Floats:
    from scipy.optimize import least_squares

    def residuals(scaled: Floats) -> Floats:
        point = scaled * _DEVIATIONS
        errors = np.log(taken / np.maximum(rows @ point, 1.0)) / _USUAL_DEVIATION
        return np.concatenate([errors, (point - _PRIOR) / _DEVIATIONS])

    # A host that waited for results took longer than its calls do.
    found = least_squares(residuals, _PRIOR / _DEVIATIONS, bounds=(0.0, np.inf), loss="soft_l1")
    point: Floats = np.asarray(found.x, dtype=np.float64) * _DEVIATIONS
    return point
