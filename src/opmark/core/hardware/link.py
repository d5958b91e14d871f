"""The measurements of a link between two devices of a machine, and the cluster's link made from them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from opmark.core.hardware.cluster import Link
from opmark.core.hardware.piecewise import fitted, largest_error, time_at
from opmark.core.measurements.estimate import label
from opmark.core.measurements.measurement import OK
from opmark.core.measurements.records import Done, LinkTrial, Transfer

# How far the lines may miss a measured transfer; what they then miss between them is published.
TOLERANCE = 0.03
_WORST_FIRST = ("unfiltered", "contended", "normal", "fifo")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMeasurement:
    """A directed link: `transfers_ns[i]` is the label of a transfer of `sizes_bytes[i]`, powers of two.

    `hand_off_ns` is the part of every transfer that wakes the other side up, 0 where nothing must. The knots are the
    model: straight lines in log-log space. `largest_error` is the most by which it misses a measured transfer, sizes
    between the powers of two included.
    """

    source: str
    destination: str
    memory: str
    status: str
    reason: str = ""
    hand_off_ns: float | None = None
    sizes_bytes: tuple[float, ...] = ()
    transfers_ns: tuple[float, ...] = ()
    knot_sizes_bytes: tuple[float, ...] = ()
    knot_transfers_ns: tuple[float, ...] = ()
    largest_error: float | None = None
    bandwidth_bytes_per_s: float | None = None
    clean_fraction: float | None = None
    samples: int = 0
    processes: int = 0
    scheduling: str = "normal"
    suite: str = ""
    environment_id: str = ""
    journal: str | None = None
    measured_at: str | None = None

    @property
    def knots(self) -> tuple[tuple[float, float], ...]:
        """The model's corners: (bytes, ns)."""
        return tuple(zip(self.knot_sizes_bytes, self.knot_transfers_ns, strict=True))

    def transfer_ns(self, size_bytes: float) -> float:
        """The model's time for a transfer. Raises `ValueError` if nothing was measured."""
        if not self.knots:
            raise ValueError(f"{self.source} to {self.destination} was not measured: {self.reason}")
        return time_at(self.knots, size_bytes)


def fold_link(
    trial: LinkTrial, done: Done, transfers: Sequence[Transfer], *, suite: str, environment_id: str
) -> LinkMeasurement:
    """The row of a finished link. Size 0 is the hand-over; sizes that are no power of two only check the model."""
    samples: dict[int, list[float]] = defaultdict(list)
    for item in transfers:
        clean = [ns for ns, flag in zip(item.ns, item.clean, strict=True) if flag == "1"]
        samples[item.size_bytes] += clean or item.ns
    hand_off_ns = label(samples[0]) if 0 in samples else 0.0
    times = {size: max(1.0, hand_off_ns + label(found)) for size, found in sorted(samples.items()) if size}
    powers = [(float(size), ns) for size, ns in times.items() if not size & (size - 1)]
    common: dict[str, Any] = {"source": trial.source, "destination": trial.destination, "memory": trial.memory}
    if done.status != OK or len(powers) < 2:
        return LinkMeasurement(
            **common,
            status=done.status,
            reason=done.reason or "too few sizes",
            suite=suite,
            environment_id=environment_id,
        )
    knots = fitted(powers, tolerance=TOLERANCE)
    flags = "".join(item.clean for item in transfers)
    ways = {item.scheduling for item in transfers}
    (low, low_ns), (high, high_ns) = powers[-2:]
    return LinkMeasurement(
        **common,
        status=done.status,
        hand_off_ns=hand_off_ns,
        sizes_bytes=tuple(size for size, _ in powers),
        transfers_ns=tuple(ns for _, ns in powers),
        knot_sizes_bytes=tuple(size for size, _ in knots),
        knot_transfers_ns=tuple(ns for _, ns in knots),
        largest_error=largest_error(knots, [(float(size), ns) for size, ns in times.items()]),
        bandwidth_bytes_per_s=(high - low) * 1e9 / max(high_ns - low_ns, 1.0),
        clean_fraction=flags.count("1") / len(flags),
        samples=sum(len(found) for found in samples.values()),
        processes=1,
        scheduling=next(way for way in (*_WORST_FIRST, *ways) if way in ways),
        suite=suite,
        environment_id=environment_id,
    )


def cluster_link(measured: LinkMeasurement, *, source: str = "", destination: str = "", port: str = "") -> Link:
    """A cluster's link as `measured` says, between the devices that a cluster calls `source` and `destination`.

    A cluster draws straight lines between its points, so they stand at every measured size, not at the model's
    corners only. Raises `ValueError` if nothing was measured.
    """
    # Times that differ in their last bit may be rounded apart; a larger transfer is never faster.
    times_ns = accumulate((round(measured.transfer_ns(size)) for size in measured.sizes_bytes), max)
    points = tuple((int(size), ns) for size, ns in zip(measured.sizes_bytes, times_ns, strict=True))
    if not points:
        raise ValueError(f"{measured.source} to {measured.destination} was not measured: {measured.reason}")
    return Link(
        source=source or measured.source,
        destination=destination or measured.destination,
        latency_ns=round(measured.hand_off_ns or 0.0),
        bandwidth_bytes_per_s=measured.bandwidth_bytes_per_s or 0.0,
        port=port,
        points=points,
    )
