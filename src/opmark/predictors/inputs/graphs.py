"""The graphs of measured networks: among those captured when they were measured, else captured again by name."""

import glob
from collections.abc import Callable, Iterable
from pathlib import Path

from opmark.core.errors import ContentError, OpMarkError
from opmark.core.graph import Graph
from opmark.core.measurement import NetworkMeasurement
from opmark.models.graphs import encoding as store
from opmark.models.graphs.shipped import graphs_folder, sized_graphs
from opmark.models.resolve import default_cache, graph_of


def graphs_of(
    networks: Iterable[NetworkMeasurement], target_name: str, *, cache: Path | None, warn: Callable[[str], None]
) -> dict[str, Graph]:
    """The graph of each network by the id it was measured under; `warn` hears which cannot be had here.

    A network whose kernels are told apart differently since then is still the network that was measured.
    """
    networks = list(networks)
    sizes: dict[tuple[str, int], set[str]] = {}
    for one in networks:
        sizes.setdefault((one.network, one.batch), set()).add(one.graph_id)
    found: dict[str, Graph] = {}
    captured: dict[str, dict[str, Graph]] = {}
    folder = (cache or default_cache()) / "graphs"
    for one in networks:
        if one.graph_id in found:
            continue
        if one.network not in captured:
            captured[one.network] = _captured(folder, one.network) | _travelling(one.network)
        graph = captured[one.network].get(one.graph_id)
        if graph is None:
            try:
                dimensions = {} if one.size is None else {"batch": one.batch, "size": one.size}
                graph = graph_of(one.network, target_name, cache=cache, dimensions=dimensions)
            except OpMarkError as error:
                warn(f"{one.network} is left out: {error}")
                continue
            if graph.id != one.graph_id and len(sizes[one.network, one.batch]) > 1:
                warn(f"{one.network} is left out: which of the sizes it was measured in this row is, is not known here")
                continue
            if graph.id != one.graph_id:
                warn(f"{one.network} has other kernels here than where it was measured")
        found[one.graph_id] = graph
    return found


def _captured(folder: Path, network: str) -> dict[str, Graph]:
    """Graphs of `network` that were captured here, in any batch and size, by id."""
    found = {}
    for path in sorted(folder.glob(f"{glob.escape(network)}-{'[0-9a-f]' * 16}.json")):
        try:
            graph = store.load(path)
        except ContentError:  # damaged; whoever needs it captures it again
            continue
        found[graph.id] = graph
    return found


def _travelling(network: str) -> dict[str, Graph]:
    """Graphs of `network` that came with OpMark, in any batch and size, by id."""
    return {graph.id: graph for graph in sized_graphs(network, graphs_folder())}
