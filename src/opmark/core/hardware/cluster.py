"""Devices and the links between them."""

import itertools
from collections import Counter
from dataclasses import dataclass

from opmark.core.errors import ContentError

PROVENANCES = ("measured", "imported", "analytic")
# Bytes and ns stay below this, so that a float holds each of them exactly.
LIMIT = 2**53
_RATE_AT_MOST = 1e18
_DEVICE_RANGES = (
    ("memory_bytes", 1, 2**62),
    ("slots", 1, 2**20),
    ("dispatch_ns", 0, LIMIT),
    ("price_per_hour", 0, 10**6),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device of a cluster. `type` groups equal devices; `target` names whose predictor gives its latencies.

    `dispatch_ns` is paid before every kernel; `blocking_copy` makes a transfer hold the device. `own_copies` makes the
    device itself copy: a unit lasts longer by the layout costs of what it hands on, and an arriving tensor holds the
    device.
    """

    name: str
    type: str
    memory_bytes: int
    target: str = ""
    slots: int = 1
    dispatch_ns: int = 0
    price_per_hour: float = 0.0
    blocking_copy: bool = False
    own_copies: bool = False
    provenance: str = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A directed link that serves one transfer at a time; links that share a `port` serve one between them.

    With `points`, pairs of (bytes, ns) in ascending bytes, a transfer's time is interpolated on them and follows
    `bandwidth_bytes_per_s` beyond the last.
    """

    source: str
    destination: str
    latency_ns: int
    bandwidth_bytes_per_s: float
    port: str = ""
    points: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Devices, links, and the device that holds a graph's inputs and wants its outputs (default: the first).

    A route names the devices it passes, its ends included; a pair without one takes the path of fewest links.
    """

    name: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    host: str = ""
    routes: tuple[tuple[str, ...], ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The device types, sorted."""
        return tuple(sorted({device.type for device in self.devices}))

    def problems(self) -> list[str]:
        """Everything that is wrong with this cluster, one sentence each."""
        found = []
        names = [device.name for device in self.devices]
        if not names:
            found.append("devices: at least one is needed")
        found += [f"devices: {name!r} appears twice" for name in sorted({n for n in names if names.count(n) > 1})]
        for device in self.devices:
            key = f"devices.{device.name}"
            for name, least, limit in _DEVICE_RANGES:
                value = getattr(device, name)
                if not least <= value < limit:
                    sign = "positive" if least else "0 or more"
                    found.append(f"{key}.{name}: must be {sign} and below {limit:,}, not {value}")
            if device.provenance not in PROVENANCES:
                found.append(f"{key}.provenance: one of {', '.join(PROVENANCES)}, not {device.provenance!r}")
        for link in self.links:
            key = f"links.{link.source}->{link.destination}"
            found += [
                f"{key}: no device is called {end!r}" for end in (link.source, link.destination) if end not in names
            ]
            if link.source == link.destination:
                found.append(f"{key}: a link joins two devices, not one with itself")
            if not 0 < link.bandwidth_bytes_per_s <= _RATE_AT_MOST:
                found.append(
                    f"{key}.bandwidth_bytes_per_s: must be positive and at most {_RATE_AT_MOST:.0e}, "
                    f"not {link.bandwidth_bytes_per_s}"
                )
            sizes = [size for size, _ in link.points]
            if sizes != sorted(set(sizes)) or any(
                not (0 <= size < 2**62 and 0 <= ns < 2**62) for size, ns in link.points
            ):
                found.append(
                    f"{key}.points: must be pairs of (bytes, ns) in ascending bytes, none negative or beyond 2^62"
                )
            if not 0 <= link.latency_ns < LIMIT:
                found.append(f"{key}.latency_ns: must not be negative, and below 2^53, not {link.latency_ns}")
        joined = Counter((link.source, link.destination) for link in self.links)
        found += [f"links.{a}->{b}: appears {count} times" for (a, b), count in joined.items() if count > 1]
        for route in self.routes:
            key = f"routes.{'->'.join(route)}"
            if len(route) < 2:
                found.append(f"{key}: a route has at least two devices")
            if len(set(route)) < len(route):
                found.append(f"{key}: a route passes no device twice")
            hops = itertools.pairwise(route)
            found += [f"{key}: no link goes from {a!r} to {b!r}" for a, b in hops if (a, b) not in joined]
        if self.host and self.host not in names:
            found.append(f"host: no device is called {self.host!r}")
        return found

    def checked(self, where: str) -> "Cluster":
        """This cluster, or one `ContentError` that names everything wrong with it."""
        found = self.problems()
        if found:
            raise ContentError("; ".join(found), where=where)
        return self
