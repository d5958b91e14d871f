"""Which links a tensor takes between two devices, and how long each holds it."""

from collections import deque
from itertools import pairwise

from opmark.core.cluster import Cluster, Link
from opmark.core.units import NS_PER_S


def routes(cluster: Cluster) -> dict[tuple[str, str], tuple[int, ...]]:
    """Link numbers from each device to each other one it can reach.

    A route the cluster names wins; otherwise the path of fewest links, among those the one whose links stand first.
    """
    leaving: dict[str, list[int]] = {device.name: [] for device in cluster.devices}
    first: dict[tuple[str, str], int] = {}
    for number, link in enumerate(cluster.links):
        leaving[link.source].append(number)
        first.setdefault((link.source, link.destination), number)
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for device in cluster.devices:
        reached: dict[str, tuple[int, ...]] = {device.name: ()}
        queue = deque([device.name])
        while queue:
            here = queue.popleft()
            for number in leaving[here]:
                there = cluster.links[number].destination
                if there not in reached:
                    reached[there] = (*reached[here], number)
                    queue.append(there)
        del reached[device.name]
        found |= {(device.name, there): path for there, path in reached.items()}
    found |= {(route[0], route[-1]): tuple(first[hop] for hop in pairwise(route)) for route in cluster.routes}
    return found


def hop_ns(link: Link, size_bytes: int) -> int:
    """Whole ns that `link` is busy with a tensor: latency + ceil(bytes · 10⁹ / bandwidth), or its piecewise points."""
    rate = Rate(link.bandwidth_bytes_per_s)
    if not link.points:
        return link.latency_ns + rate.ns(size_bytes)
    points = [(0, link.latency_ns), *link.points] if link.points[0][0] > 0 else list(link.points)
    for (low, low_ns), (high, high_ns) in pairwise(points):
        if low <= size_bytes <= high:
            return low_ns - (low_ns - high_ns) * (size_bytes - low) // (high - low)
    last, last_ns = points[-1]
    return last_ns + rate.ns(size_bytes - last)


class Rate:
    """A bandwidth as an exact fraction, so that a transfer time has no rounding of its own."""

    def __init__(self, bytes_per_s: float) -> None:
        self.numerator, self.denominator = float(bytes_per_s).as_integer_ratio()

    def ns(self, size_bytes: int) -> int:
        """The ceiling of bytes · 10⁹ / bandwidth."""
        return -(-size_bytes * NS_PER_S * self.denominator // self.numerator)
