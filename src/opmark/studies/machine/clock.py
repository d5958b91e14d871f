"""Whether this machine is at its usual clock now, by the sentinels of what was measured on it before."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from opmark.bench.clock.machine import device_slug
from opmark.bench.run.noise import Noise
from opmark.core.errors import ContentError
from opmark.core.host_clock import host_clock
from opmark.core.workspace import versions
from opmark.datasets.format import manifest
from opmark.datasets.format.manifest import Manifest

# A host that is this much slower has changed its clock; one reading is not surer than that.
_FELT = 0.03
_MADE_UP = "null"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockNow:
    """`ratio` is how many times longer the sentinels take than was usual while `release` was measured.

    `off` is how far they moved apart beside that, as a fraction: something else than the clock.
    """

    release: str
    ratio: float
    off: float

    @property
    def advice(self) -> str:
        """What to do in a slow hour; empty in any other."""
        if self.ratio <= 1 + _FELT or self.off > _FELT:
            return ""
        return (
            f"The clock is {self.ratio - 1:.0%} slower than was usual for {self.release}: kernels may be measured, "
            "for their labels are told at the usual clock; leave whole networks, and what stays in doubt "
            "(--again low_quality), to another hour."
        )


def clock_now(noise: Noise, datasets: Path) -> ClockNow | None:
    """The clock beside the newest release of this device in `datasets`; None where none tells it."""
    device = device_slug()
    for version in reversed(versions(datasets / device)):
        try:
            found = manifest.read(datasets / device / version)
        except ContentError:  # `opmark datasets validate` says what is wrong with it
            continue
        usual = usual_sentinels_ns(found)
        if usual.keys() & noise.sentinels_ns.keys():
            now = host_clock(noise.sentinels_ns, usual)
            return ClockNow(release=f"{found.device}/{found.version}", ratio=now.ratio, off=now.off)
    return None


def usual_sentinels_ns(release: Manifest) -> dict[str, float]:
    """Where each sentinel was at the median of the time that `release` was measured in, in ns.

    What made-up targets said does not count.
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
    """The median of values with weights: the first below which half of the weight lies."""
    ordered = sorted(readings)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for value, weight in ordered:
        passed += weight
        if passed >= half:
            return value
    return ordered[-1][0]
