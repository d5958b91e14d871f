"""Graphs of measured networks, and the facts of a graph that the sum of its kernels depends on."""

import glob
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from opmark.core.errors import ContentError, OpMarkError
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import NetworkMeasurement
from opmark.models.graphs import encoding as store
from opmark.models.graphs.shipped import graphs_folder, sized_graphs
from opmark.models.resolve import default_cache, graph_of
from opmark.models.zoo import models

TRAINING = "training"
_FORWARD = "forward"
_USUAL = "float32"


def graphs_of(
    networks: Iterable[NetworkMeasurement],
    target_name: str,
    *,
    cache: Path | None,
    warn: Callable[[str], None],
    block_width: int | None = None,
) -> dict[str, Graph]:
    """Find the graph of each network, by the id under which it was measured.

    Graphs come from the cache, from those stored with OpMark, or are captured again by name; a captured graph counts
    even if its kernels are now told apart differently. `warn` receives a sentence for every graph that cannot be had.
    `block_width` is that of the measured processor, as `graph_of` takes it.
    """
    networks = list(networks)
    sizes: dict[tuple[str, int], set[str]] = {}
    for one in networks:
        sizes.setdefault((one.network, one.batch), set()).add(one.graph_id)
    found: dict[str, Graph] = {}
    known: dict[str, dict[str, Graph]] = {}
    folder = (cache or default_cache()) / "graphs"
    for one in networks:
        if one.graph_id in found:
            continue
        if one.network not in known:
            stored = {graph.id: graph for graph in sized_graphs(one.network, graphs_folder())}
            known[one.network] = _captured(folder, one.network) | stored
        graph = known[one.network].get(one.graph_id)
        if graph is None:
            try:
                dimensions = {} if one.size is None else {"batch": one.batch, "size": one.size}
                graph = graph_of(one.network, target_name, cache=cache, dimensions=dimensions, block_width=block_width)
            except OpMarkError as error:
                warn(f"{one.network} is left out: {error}")
                continue
            unsure = one.size is None and not _has_one_size(one.network) and len(sizes[one.network, one.batch]) > 1
            if graph.id != one.graph_id and unsure:
                warn(
                    f"{one.network} is left out: it was measured in several sizes, and the size of this row is unknown"
                )
                continue
            if graph.id != one.graph_id:
                warn(f"{one.network} has other kernels here than where it was measured")
        found[one.graph_id] = graph
    return found


def _has_one_size(network: str) -> bool:
    family = models().get(network.partition("@")[0])
    return family is not None and family.onnx_file is not None


def _captured(folder: Path, network: str) -> dict[str, Graph]:
    """Load the graphs of `network` that were captured on this machine, in any batch and size, by id."""
    found = {}
    for path in sorted(folder.glob(f"{glob.escape(network)}-{'[0-9a-f]' * 16}.json")):
        try:
            graph = store.load(path)
        except ContentError:  # damaged: captured again when it is needed
            continue
        found[graph.id] = graph
    return found


def footprint_bytes(graph: Graph) -> int:
    """The bytes that compete for the cache: the weights that are read, and the peak of activations.

    Of a table that rows are looked up in, only those rows count.
    """
    touched: dict[str, float] = {}
    for node in graph.nodes:
        own = [name for name in node.inputs if name in graph.weights]
        size = sum(graph.weights[name].size_bytes for name in own)
        # a view of a weight does not tell how much of the weight is read
        share = 1.0 if node.free or not size else min(1.0, node.work.weight_bytes / size)
        for name in own:
            touched[name] = max(touched.get(name, 0.0), share * graph.weights[name].size_bytes)
    return round(sum(touched.values())) + graph.peak_activation_bytes


def activation_traffic_bytes(graph: Graph) -> int:
    """The bytes of activations that all kernels read and write, one after the other."""
    return sum(node.work.moved_bytes - node.work.weight_bytes for node in graph.costly)


def counted_python_calls(graph: Graph) -> float | None:
    """The Python functions that a forward pass enters, None where nobody counted; a runtime's own loop enters none."""
    return graph.python_calls if graph.language == "aten" else 0.0


def network_class(graph: Graph) -> str:
    """`training` for a graph with more than a forward pass, else the element type of most of its FLOPs."""
    flops: Counter[str] = Counter()
    for node in graph.costly:
        if node.phase != _FORWARD:
            return TRAINING
        flops[str(node.kernel.params.get("dtype", _USUAL))] += node.work.flops
    return max(flops, key=lambda name: flops[name]) if flops else _USUAL
