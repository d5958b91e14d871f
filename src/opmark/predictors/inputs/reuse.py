"""What a network finds in cache: how much it reads before it comes back to a weight, and what kind of network it is."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.graph import Graph
from opmark.predictors.inputs.arrays import Floats

if TYPE_CHECKING:
    from opmark.predictors.model.network import Parts

TRAINING = "training"
_FORWARD = "forward"
_USUAL = "float32"


def footprint_bytes(graph: Graph) -> int:
    """What a network wants in cache: the weights it reads and its peak of activations.

    Of a table that rows are looked up in, those rows count and not the table.
    """
    touched: dict[str, float] = {}
    for node in graph.nodes:
        own = [name for name in node.inputs if name in graph.weights]
        size = sum(graph.weights[name].size_bytes for name in own)
        # A view of a weight says nothing of how much of it is read.
        share = 1.0 if node.free or not size else min(1.0, node.work.weight_bytes / size)
        for name in own:
            touched[name] = max(touched.get(name, 0.0), share * graph.weights[name].size_bytes)
    return round(sum(touched.values())) + graph.peak_activation_bytes


def network_class(graph: Graph) -> str:
    """`training` for a graph with more than a forward pass, else the element type of most of its FLOPs."""
    flops: Counter[str] = Counter()
    for node in graph.costly:
        if node.phase != _FORWARD:
            return TRAINING
        flops[str(node.kernel.params.get("dtype", _USUAL))] += node.work.flops
    return max(flops, key=lambda name: flops[name]) if flops else _USUAL


def weight_shares(graph: Graph, parts: "Parts") -> Floats:
    """The share of weights in the bytes that each distinct kernel of `parts` moves, between 0 and 1."""
    shares = np.zeros(len(parts.kernels))
    for node, index in zip(graph.nodes, parts.of_node, strict=True):
        if index >= 0:
            shares[index] = min(1.0, node.work.weight_bytes / max(node.work.moved_bytes, 1))
    return shares
