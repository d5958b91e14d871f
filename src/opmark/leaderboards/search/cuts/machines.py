"""The machines of a cluster: devices joined by links that are fast for at least one of their ends."""

from collections.abc import Sequence

from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.search.cuts.graph_orders import strong_components

# A link is inside a machine if it has at least this share of the bandwidth of the fastest link of one of its ends.
NEAR_SHARE = 0.5

Devices = tuple[int, ...]


def machines_of(problem: Problem, devices: Sequence[int]) -> list[Devices]:
    """The given devices by machine, in the given order; a machine comes where its first device does.

    A GPU and its host are one machine, two hosts with Ethernet between them are two, four boards on one switch are one.
    """
    names = {device.name: number for number, device in enumerate(problem.cluster.devices)}
    links = [
        (names[link.source], names[link.destination], link.bandwidth_bytes_per_s) for link in problem.cluster.links
    ]
    fastest = [0.0] * len(names)
    for source, destination, rate in links:
        fastest[source] = max(fastest[source], rate)
        fastest[destination] = max(fastest[destination], rate)
    near = [(a, b) for a, b, rate in links if rate >= NEAR_SHARE * min(fastest[a], fastest[b])]
    component = strong_components(len(names), [*near, *((b, a) for a, b in near)])
    rows: dict[int, list[int]] = {}
    for device in devices:
        rows.setdefault(component[device], []).append(device)
    return [tuple(row) for row in rows.values()]
