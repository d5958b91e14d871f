"""Kernels of networks that nothing is drawn from: measured so that predictors can be judged by them."""

from collections.abc import Mapping, Sequence

from opmark.core.graph import Graph
from opmark.core.kernel import Kernel


def judging_kernels(networks: Sequence[tuple[str, Graph]], most: int) -> tuple[Kernel, ...]:
    """At most `most` distinct kernels of `networks`, given as (family, graph): whole networks as far as they go.

    Families take turns, the network that adds the fewest kernels first; so the sum of measured kernels can be held
    against as many measured networks as possible. The last network may stay incomplete.
    """
    found: dict[str, Kernel] = {}
    left = [(family, {node.kernel.key: node.kernel for node in graph.costly}) for family, graph in networks]
    turns: dict[str, int] = {}
    while left and len(found) < most:
        place = min(range(len(left)), key=lambda place: (turns.get(left[place][0], 0), _new(left[place][1], found)))
        family, kernels = left.pop(place)
        turns[family] = turns.get(family, 0) + 1
        found |= kernels
    return tuple(found.values())[:most]


def _new(kernels: Mapping[str, Kernel], found: Mapping[str, Kernel]) -> int:
    return sum(1 for key in kernels if key not in found)
