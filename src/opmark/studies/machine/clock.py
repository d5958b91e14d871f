"""Compare this machine's clock with earlier measurements, by the sentinels' times."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.clock.machine import device_slug
from opmark.bench.run.noise import Noise
from opmark.core.errors import ContentError
from opmark.core.measurements.host_clock import host_clock
from opmark.core.workspace import versions
from opmark.datasets.format import manifest
from opmark.datasets.format.manifest import ReleaseManifest

# A host that is this much slower has changed its clock; a single reading is not more precise.
_FELT = 0.03
_MADE_UP = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockNow:
    """The sentinels take `ratio` times as long as usual while `release` was measured.

    `off` is the remaining difference between the sentinels as a fraction, which the clock does not explain.
    """

    release: str
    ratio: float
    off: float

    @property
    def advice(self) -> str:
        """Advice for a slow hour; empty otherwise."""
        if self.ratio <= 1 + _FELT or self.off > _FELT:
            return ""
        return (
            f"The clock is {self.ratio - 1:.0%} slower than at the state of {self.release}: kernels may be measured, "
            "because their labels are told at one state; measure whole networks and doubtful trials "
            "(--again doubtful) at another time."
        )


def clock_now(noise: Noise, datasets: Path) -> ClockNow | None:
    """Compare with the newest release of this device in `datasets` that records sentinels; None without one."""
    device = device_slug()
    for version in reversed(versions(datasets / device)):
        try:
            found = manifest.read(datasets / device / version)
        except ContentError:  # `opmark datasets validate` reports the error
            continue
        usual = usual_sentinels_ns(found)
        if usual.keys() & noise.sentinels_ns.keys():
            now = host_clock(noise.sentinels_ns, usual)
            return ClockNow(release=f"{found.device}/{found.version}", ratio=now.ratio, off=now.off)
    return None


def usual_sentinels_ns(release: ReleaseManifest) -> dict[str, float]:
    """The median time of each sentinel while `release` was measured, in ns, weighted by measuring time.

    Made-up targets do not count.
    """
    made_up = {target.name for target in release.targets if target.backend == _MADE_UP}
    readings: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for source in release.sources:
        for key, ns in source.sentinels_ns.items():
            target, _, sentinel = key.partition("/")
            if target not in made_up:
                readings[sentinel].append((ns, source.sampled_s.get(target, 0.0)))
    return {name: _middle(found) for name, found in readings.items()}


def _middle(readings: list[tuple[float, float]]) -> float:
    """The weighted median: the first value at which half of the weight is reached."""
    ordered = sorted(readings)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for value, weight in ordered:
        passed += weight
        if passed >= half:
            return value
    return ordered[-1][0]
