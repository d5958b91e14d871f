"""Price the layout reorders that a cut adds where a tensor is in a blocked layout.

ONNX Runtime keeps the results of convolutions in blocks of channels. Its graph contains reorders to and from that
layout only where its own kernels need them. A cut inside a blocked region needs two more; the target's predictor of
`movement` kernels prices them.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.kinds import KINDS
from opmark.leaderboards.problem.fields import Tensor

_OUT, _IN = "reorder-output", "reorder-input"
# Keyed by (producing unit, reading unit): ns for one reorder of all blocked tensors that pass between them.
LayoutNs = Mapping[tuple[str, str], float]


class _Latencies(Protocol):
    hot_ns: npt.NDArray[np.float64]


@runtime_checkable
class KernelCosts(Protocol):
    """A cost model that can price single kernels, such as `opmark.predictors.model.cost_model.CostModel`."""

    def kernels(self, kernels: Sequence[Kernel]) -> _Latencies:
        """The latency of each kernel."""
        ...


def blocked_tensors(graph: Graph) -> dict[str, int]:
    """The tensors of `graph` in a blocked layout, with their block widths.

    Blocked convolutions and pools produce such tensors, and so does any kernel that reads one without reordering it.
    """
    found: dict[str, int] = {}
    for node in graph.nodes:
        params = node.kernel.params
        if params.get("op") == _OUT:
            continue
        own = params.get("block")
        block = (
            own if isinstance(own, int) and own > 0 else max((found.get(name, 0) for name in node.inputs), default=0)
        )
        if block:
            found.update(dict.fromkeys(node.outputs, block))
    return found


def unit_layout_ns(graph: Graph, groups: Sequence[tuple[int, ...]], names: Sequence[str], costs: object) -> LayoutNs:
    """The cost of leaving (or entering) the blocked layout between each pair of units; empty where nothing is blocked.

    Each tensor that stays blocked between its producer and its reader costs the mean of the two reorders. Where the
    graph itself contains a reorder, the units already pay for it.
    """
    blocked = blocked_tensors(graph)
    if not blocked or not isinstance(costs, KernelCosts):
        return {}
    unit_of = {node: name for name, nodes in zip(names, groups, strict=True) for node in nodes}
    maker = {tensor: unit_of[number] for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    wanted: dict[tuple[str, str], set[str]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            if tensor in blocked and maker.get(tensor, unit_of[number]) != unit_of[number]:
                wanted.setdefault((maker[tensor], unit_of[number]), set()).add(tensor)
    crossing = sorted(set().union(*wanted.values())) if wanted else []
    kernels = [kernel for tensor in crossing for kernel in _reorders(graph.tensors[tensor].shape, blocked[tensor])]
    if not kernels:
        return {}
    each = np.asarray(costs.kernels(kernels).hot_ns).reshape(-1, 2).mean(axis=1).tolist()
    price = dict(zip(crossing, each, strict=True))
    return {pair: sum(price[tensor] for tensor in sorted(tensors)) for pair, tensors in wanted.items()}


def boundary_of(tensor: Tensor, layouts: Mapping[str, LayoutNs]) -> dict[str, int]:
    """The reorder cost of a transfer of `tensor` on each device type: that of its most expensive reader."""
    found = {}
    for kind, layout in layouts.items():
        ns = max((layout.get((tensor.producer, reader), 0.0) for reader in tensor.consumers), default=0.0)
        if ns > 0:
            found[kind] = round(ns)
    return found


def _reorders(shape: tuple[int, ...], block: int) -> tuple[Kernel, Kernel]:
    """The kernels that turn a blocked tensor of `shape` into a plain one, and back."""
    movement = KINDS.load("movement")
    out = movement.parameters(op=_OUT, shapes=(shape,), arguments=(shape[1], 0), block=block)
    into = movement.parameters(op=_IN, shapes=(shape,), arguments=(0,), block=block)
    return movement.kernel(out), movement.kernel(into)
