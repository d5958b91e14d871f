"""The processor's clock, round by round, as the sentinels tell it.

A guest cannot read its host's clock frequency. A host that lowers it slows the work in a core's own caches and the
copies beyond them alike, and kernels with them (decision 0014): that is a shift of the clock. Where the two sentinels
move apart, something else happened, and the round is worth nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opmark.core.estimate import median

COMPUTE, MEMORY = "compute", "memory"
# Beyond this it is not the same machine's clock any more.
_MOST_SHIFT = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class HostClock:
    """The clock during a round: `ratio` is how many times longer everything took than usual.

    `off` is how far the machine was from itself beside that, as a fraction.
    """

    ratio: float = 1.0
    off: float = 0.0


def usual_ns(readings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of every sentinel over `readings`, in ns; empty where there are none."""
    found: dict[str, list[float]] = {}
    for reading in readings:
        for name, ns in reading.items():
            found.setdefault(name, []).append(ns)
    return {name: median(values) for name, values in found.items()}


def host_clock(reading: Mapping[str, float], usual: Mapping[str, float]) -> HostClock:
    """What `reading` tells beside the `usual` one, both in ns by sentinel.

    The compute sentinel gives the ratio: it is the steadier one. Sentinels of other devices, whose clock is read
    directly, only say how far they are off.
    """
    shifts = {name: ns / usual[name] for name, ns in reading.items() if name in usual}
    if not shifts:
        return HostClock()
    if not {COMPUTE, MEMORY} <= shifts.keys() or abs(shifts[COMPUTE] - 1) > _MOST_SHIFT:
        return HostClock(off=max(abs(shift - 1) for shift in shifts.values()))
    ratio = shifts[COMPUTE]
    return HostClock(ratio=ratio, off=max(abs(shift / ratio - 1) for shift in shifts.values()))
