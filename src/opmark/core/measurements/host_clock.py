"""Estimate the processor's clock in each round from the sentinels (decision 0014).

A guest cannot read the clock frequency of its host. A lower frequency slows down both sentinels, and the kernels, by
the same factor: this is a change of the clock. If the two sentinels change by different factors, something else
disturbed the machine, and the round is unusable.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opmark.core.measurements.estimate import median

COMPUTE, MEMORY = "compute", "memory"
# A larger change is not a change of the clock.
_MOST_SHIFT = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class HostClock:
    """The clock during a round: everything took `ratio` times as long as usual.

    `off` is the largest relative deviation that this ratio does not explain.
    """

    ratio: float = 1.0
    off: float = 0.0


def usual_ns(readings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of every sentinel over `readings`, in ns; empty without readings."""
    found: dict[str, list[float]] = {}
    for reading in readings:
        for name, ns in reading.items():
            found.setdefault(name, []).append(ns)
    return {name: median(values) for name, values in found.items()}


def host_clock(reading: Mapping[str, float], usual: Mapping[str, float]) -> HostClock:
    """Compare `reading` with the `usual` one, both in ns by sentinel.

    The compute sentinel gives the ratio because it is the steadier one. Sentinels of other devices give only `off`:
    the clock of such a device is read directly.
    """
    shifts = {name: ns / usual[name] for name, ns in reading.items() if name in usual}
    if not shifts:
        return HostClock()
    if not {COMPUTE, MEMORY} <= shifts.keys() or abs(shifts[COMPUTE] - 1) > _MOST_SHIFT:
        return HostClock(off=max(abs(shift - 1) for shift in shifts.values()))
    ratio = shifts[COMPUTE]
    return HostClock(ratio=ratio, off=max(abs(shift / ratio - 1) for shift in shifts.values()))
