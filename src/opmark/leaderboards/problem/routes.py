"""Routes between devices, and the time that a tensor holds each link on its route."""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from opmark.core.hardware.cluster import Cluster, Link
from opmark.core.units import NS_PER_S
from opmark.leaderboards.problem.integers import Integers, integers

_LIMIT = 2**63


def routes(cluster: Cluster) -> dict[tuple[str, str], tuple[int, ...]]:
    """Link numbers from each device to every other one that it can reach.

    A route that the cluster names wins; otherwise the path of fewest links, and among those the one whose links stand
    first.
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
    """Whole ns that a tensor holds `link`: latency + ceil(bytes · 10⁹ / bandwidth), or its piecewise points."""
    rate = Rate(link.bandwidth_bytes_per_s)
    if not link.points:
        return link.latency_ns + rate.ns(size_bytes)
    points = [(0, link.latency_ns), *link.points] if link.points[0][0] > 0 else list(link.points)
    for (low, low_ns), (high, high_ns) in pairwise(points):
        if low <= size_bytes <= high:
            return low_ns - (low_ns - high_ns) * (size_bytes - low) // (high - low)
    last, last_ns = points[-1]
    return last_ns + rate.ns(size_bytes - last)


def hop_table(links: Sequence[Link], sizes_bytes: Integers) -> Integers:
    """`hop_ns` of S sizes on L links (S×L); links with equal figures are worked out once."""
    known: dict[tuple[object, ...], Integers] = {}
    table = np.empty((len(sizes_bytes), len(links)), dtype=np.int64)
    for number, link in enumerate(links):
        key = link.latency_ns, link.bandwidth_bytes_per_s, link.points
        if key not in known:
            known[key] = _column(link, sizes_bytes)
        table[:, number] = known[key]
    return table


def _column(link: Link, sizes_bytes: Integers) -> Integers:
    """All at once if no intermediate result leaves 64 bits, otherwise one by one in whole numbers of any size."""
    rate = Rate(link.bandwidth_bytes_per_s)
    largest = int(sizes_bytes.max(initial=0)) * NS_PER_S * rate.denominator
    if link.points or largest + link.latency_ns >= _LIMIT or rate.numerator >= _LIMIT:
        return integers(hop_ns(link, size) for size in sizes_bytes.tolist())
    found: Integers = link.latency_ns - (-sizes_bytes * (NS_PER_S * rate.denominator) // rate.numerator)
    return found


class Rate:
    """A bandwidth as an exact fraction, so that transfer times have no rounding error of their own."""

    def __init__(self, bytes_per_s: float) -> None:
        self.numerator, self.denominator = float(bytes_per_s).as_integer_ratio()

    def ns(self, size_bytes: int) -> int:
        """The ceiling of bytes · 10⁹ / bandwidth."""
        return -(-size_bytes * NS_PER_S * self.denominator // self.numerator)
