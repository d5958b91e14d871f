"""The graphs of measured networks, found again by name."""

from collections.abc import Callable, Iterable
from pathlib import Path

from opmark.core.errors import OpMarkError
from opmark.core.graph import Graph
from opmark.core.measurement import NetworkMeasurement
from opmark.models.resolve import graph_of


def graphs_of(
    networks: Iterable[NetworkMeasurement], target_name: str, *, cache: Path | None, warn: Callable[[str], None]
) -> dict[str, Graph]:
    """The graph of each network by the id it was measured under; `warn` hears which cannot be had here.

    A network whose kernels are told apart differently since then is still the network that was measured.
    """
    found: dict[str, Graph] = {}
    for one in networks:
        if one.graph_id in found:
            continue
        try:
            graph = graph_of(
                one.network, target_name, cache=cache, dimensions={"batch": one.batch} if one.batch != 1 else {}
            )
        except OpMarkError as error:
            warn(f"{one.network} is left out: {error}")
            continue
        if graph.id != one.graph_id:
            warn(f"{one.network} has other kernels here than where it was measured")
        found[one.graph_id] = graph
    return found
