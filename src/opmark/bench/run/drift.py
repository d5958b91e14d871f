"""Compare the sentinels of a round with their usual readings, to detect drift."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from opmark.core.measurements.host_clock import COMPUTE, HostClock, host_clock, usual_ns
from opmark.core.measurements.records import Sentinels

# Fewer readings than this do not define the usual one.
_FEW_READINGS = 5


class Drift:
    """The sentinel readings of a run by target; a deviation of more than `tolerance` is drift."""

    def __init__(self, earlier: Iterable[Sentinels], tolerance: float) -> None:
        self._tolerance = tolerance
        self._readings: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        for item in earlier:
            self._add(item.target, item.ns)

    def clock(self, target: str, reading: Mapping[str, float]) -> HostClock:
        """The clock at `reading`, in ns by sentinel; the usual clock while there are too few readings."""
        earlier = self._readings[target]
        return host_clock(reading, usual_ns(earlier)) if len(earlier) >= _FEW_READINGS else HostClock()

    def is_calm(self, target: str, reading: Mapping[str, float]) -> bool:
        """Return True if the machine does not drift, at any clock."""
        return self.clock(target, reading).off <= self._tolerance

    def judge(
        self, number: int, target: str, before: Mapping[str, float], after: Mapping[str, float], *, is_last: bool
    ) -> Sentinels:
        """Record round `number` with its readings before and after; the last attempt is always accepted."""
        reading, step = steady(before, after)
        clock = self.clock(target, reading)
        off = max(clock.off, step)
        self._add(target, reading)
        is_off = off > self._tolerance
        return Sentinels(
            round=number,
            target=target,
            ns=reading,
            accepted=is_last or not is_off,
            drift=round(off, 4) if is_off else 0.0,
            clock_ratio=round(clock.ratio, 4),
        )

    def _add(self, target: str, reading: Mapping[str, float]) -> None:
        if reading:
            self._readings[target].append(reading)


def steady(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """One reading from those before and after a round, and the relative change of the compute sentinel.

    The compute sentinel counts with the geometric mean of both readings. The memory sentinel counts with the lower one:
    a short disturbance of the shared cache does not affect a low quantile over the round.
    """
    both = {name: (ns, after.get(name, ns)) for name, ns in before.items()}
    step = max((max(pair) / min(pair) - 1 for name, pair in both.items() if name == COMPUTE), default=0.0)
    return {name: min(pair) if name != COMPUTE else (pair[0] * pair[1]) ** 0.5 for name, pair in both.items()}, step
