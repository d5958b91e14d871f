"""Make a problem from a network: matched kernels become units, predicted latencies become costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from opmark.core.errors import ContentError
from opmark.core.hardware.cluster import Cluster
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.making.boundaries import boundary_of, unit_layout_ns
from opmark.leaderboards.making.kernel_matching import units_of
from opmark.leaderboards.making.prediction_error import error_factors, shape_group_of, weighted_interval
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

# The node numbers of one unit in one graph.
Nodes = tuple[int, ...]


class NetworkCost(Protocol):
    """A cost model's prediction for one network, in ns; `node_ns` has one entry per node."""

    @property
    def total_ns(self) -> float:
        """The latency of the whole network."""

    @property
    def node_ns(self) -> npt.NDArray[np.float64]:
        """The latency of each node, 0 for a free one."""


class TargetCosts(Protocol):
    """A cost model of one target, such as `opmark.predictors.cost_model.CostModel`."""

    def network(self, graph: Graph) -> NetworkCost:
        """Predict the latency of `graph` on this target."""


def make_problem(
    name: str,
    graphs: Mapping[str, Graph],
    cluster: Cluster,
    costs: Mapping[str, TargetCosts],
    *,
    model: str = "",
    family: str = "",
    bundles: Mapping[str, str] | None = None,
) -> Problem:
    """The problem of running one network on `cluster`; `graphs` and `costs` are keyed by target name.

    Tensors and weights come from the host's graph. A unit's workspace holds the tensors that stay inside the unit.
    `boundary_ns` holds the reorders that a target needs where a unit hands on a tensor in a blocked layout.
    Raises `ContentError` where a device names a target without a graph or costs.
    """
    target_of = _targets(cluster, graphs, costs)
    used = {target: graphs[target] for target in dict.fromkeys(target_of.values())}
    groups = units_of(used)
    predicted = {target: _Prediction.of(graph, costs[target]) for target, graph in used.items()}
    host = cluster.host or cluster.devices[0].name
    main = next(device.target for device in cluster.devices if device.name == host)
    names = _names(used[main], [group[main] for group in groups])
    tensors, inside = _tensors(used[main], [group[main] for group in groups], names)
    others = {target: graph for target, graph in used.items() if graph is not used[main]}
    tensors += _other_edges(others, groups, names, tensors)
    layouts = {
        kind: unit_layout_ns(used[target], [group[target] for group in groups], names, costs[target])
        for kind, target in target_of.items()
    }
    tensors = [replace(tensor, boundary_ns=boundary_of(tensor, layouts)) for tensor in tensors]
    weights_of = _weight_names(used[main])
    units = tuple(
        _unit(
            unit,
            {kind: (predicted[target], group[target]) for kind, target in target_of.items()},
            (predicted[main], group[main]),
            weights=tuple(sorted({weight for node in group[main] for weight in weights_of[node]})),
            workspace_bytes=inside[unit],
        )
        for unit, group in zip(names, groups, strict=True)
    )
    provenance = CostOrigin(
        model=model or used[main].name,
        family=family,
        bundles=bundles or {},
        graphs={target: graph.id for target, graph in used.items()},
    )
    needed = {weight for unit in units for weight in unit.weights}
    return checked(
        Problem(
            name=name,
            cluster=cluster,
            units=units,
            tensors=tuple(tensors),
            weights={weight: spec.size_bytes for weight, spec in used[main].weights.items() if weight in needed},
            provenance=provenance,
        ),
        name,
    )


def unit_kernels(graphs: Mapping[str, Graph], cluster: Cluster) -> dict[str, dict[str, Nodes]]:
    """The node numbers of each unit by target, under the names that `make_problem` gives; `graphs` are by target name.

    Raises as `make_problem` does.
    """
    target_of = _targets(cluster, graphs, graphs)
    used = {target: graphs[target] for target in dict.fromkeys(target_of.values())}
    host = cluster.host or cluster.devices[0].name
    main = next(device.target for device in cluster.devices if device.name == host)
    groups = units_of(used)
    return dict(zip(_names(used[main], [group[main] for group in groups]), groups, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prediction:
    """One target's graph with the predicted ns and the error factors of each node (no factors: none are known)."""

    graph: Graph
    node_ns: list[float]
    spread: Sequence[tuple[float, float]]

    @classmethod
    def of(cls, graph: Graph, costs: TargetCosts) -> "_Prediction":
        found = costs.network(graph)
        return cls(graph=graph, node_ns=_node_ns(found), spread=error_factors(graph, found))

    def costliest(self, nodes: Nodes) -> int:
        """The node that takes longest; the first of equal ones."""
        return max(nodes, key=lambda node: (self.node_ns[node], -node))

    def interval(self, nodes: Nodes) -> tuple[float, float]:
        """The error interval of these nodes together."""
        return weighted_interval([(self.node_ns[node], self.spread[node]) for node in nodes])


def _unit(
    name: str,
    kernels: Mapping[str, tuple[_Prediction, Nodes]],
    on_host: tuple[_Prediction, Nodes],
    *,
    weights: tuple[str, ...],
    workspace_bytes: int,
) -> Unit:
    """One unit; `kernels` are its nodes by device type, `on_host` those of the host's graph."""
    main, nodes = on_host
    costliest = main.graph.nodes[main.costliest(nodes)].kernel
    return Unit(
        name=name,
        exec_ns={kind: round(sum(one.node_ns[node] for node in own)) for kind, (one, own) in kernels.items()},
        weights=weights,
        workspace_bytes=workspace_bytes,
        phase=main.graph.nodes[nodes[0]].phase,
        kind=costliest.kind,
        interval={kind: one.interval(own) for kind, (one, own) in kernels.items() if one.spread},
        shape_group=shape_group_of(costliest) if main.spread else "",
    )


def _targets(cluster: Cluster, graphs: Mapping[str, Graph], costs: Mapping[str, object]) -> dict[str, str]:
    """The target behind each device type."""
    cluster.checked(cluster.name)
    found: dict[str, str] = {}
    for device in cluster.devices:
        key = f"{cluster.name}: devices.{device.name}.target"
        if device.target not in graphs or device.target not in costs:
            known = ", ".join(sorted(graphs)) or "none"
            raise ContentError(f"no graph or predictor for target {device.target!r}", where=key, hint=f"known: {known}")
        if found.setdefault(device.type, device.target) != device.target:
            raise ContentError(f"type {device.type!r} already stands for target {found[device.type]!r}", where=key)
    return found


def _node_ns(prediction: NetworkCost) -> list[float]:
    """Predicted ns per node; the network's own costs are spread over the nodes in proportion."""
    each: list[float] = np.asarray(prediction.node_ns, dtype=np.float64).tolist()
    total = sum(each)
    return [value * prediction.total_ns / total for value in each] if total > 0 else each


def _names(graph: Graph, groups: list[Nodes]) -> list[str]:
    """The unit names: each unit takes the name of its first kernel that takes time."""
    names: dict[str, None] = {}
    for nodes in groups:
        first = next((n for n in nodes if not graph.nodes[n].free), nodes[0])
        name = graph.nodes[first].name
        names[name if name not in names else f"{name}#{len(names)}"] = None
    return list(names)


def aliases(graph: Graph) -> dict[str, str]:
    """The source of each view of a whole tensor: a kernel's output, a graph input, or a weight.

    A view is a second name for the same memory, so no transfer or copy may count it twice. A view of a part keeps its
    own name, because sending it costs less than sending the whole.
    """
    found: dict[str, str] = {}
    specs = {**graph.weights, **graph.tensors}
    for node in graph.nodes:
        if not node.free or len(node.inputs) != 1:
            continue
        source = found.get(node.inputs[0], node.inputs[0])
        for name in node.outputs:
            if name in specs and specs[name].size_bytes == specs[source].size_bytes:
                found[name] = source
    return found


def _weight_names(graph: Graph) -> list[set[str]]:
    """The weights that each node reads, views traced back to their sources."""
    whole = aliases(graph)
    return [{whole.get(name, name) for name in node.inputs} & graph.weights.keys() for node in graph.nodes]


def _tensors(graph: Graph, groups: list[Nodes], names: list[str]) -> tuple[list[Tensor], dict[str, int]]:
    """The tensors that cross unit boundaries, and per unit the bytes that do not, without views."""
    unit_of = {node: name for name, nodes in zip(names, groups, strict=True) for node in nodes}
    maker = {tensor: unit_of[number] for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    whole = aliases(graph)
    readers: dict[str, dict[str, None]] = {}
    for number, node in enumerate(graph.nodes):
        for tensor in node.inputs:
            readers.setdefault(whole.get(tensor, tensor), {})[unit_of[number]] = None
    wanted = {whole.get(tensor, tensor) for tensor in graph.outputs}
    views = {tensor for node in graph.nodes if node.free for tensor in node.outputs}
    found = []
    inside = dict.fromkeys(names, 0)
    for tensor in (*graph.inputs, *maker):
        if tensor not in graph.tensors or tensor in whole:
            continue
        producer = maker.get(tensor, "")
        consumers = tuple(name for name in readers.get(tensor, {}) if name != producer)
        size = graph.tensors[tensor].size_bytes
        if consumers or (tensor in wanted and producer):
            output = tensor in wanted and bool(producer)
            found.append(Tensor(name=tensor, size_bytes=size, producer=producer, consumers=consumers, output=output))
        elif producer and tensor not in views:
            inside[producer] += size
    return found, inside


def _other_edges(
    graphs: Mapping[str, Graph],
    groups: tuple[dict[str, Nodes], ...],
    names: list[str],
    tensors: list[Tensor],
) -> list[Tensor]:
    """Tensors that only another target's graph passes between units: precedence must hold on every target."""
    known = {(tensor.producer, reader) for tensor in tensors for reader in tensor.consumers}
    found = []
    for target, graph in graphs.items():
        own, _ = _tensors(graph, [group[target] for group in groups], names)
        for tensor in own:
            missing = tuple(reader for reader in tensor.consumers if (tensor.producer, reader) not in known)
            if missing and tensor.producer:
                known |= {(tensor.producer, reader) for reader in missing}
                name = f"{tensor.name}@{target}"
                found.append(
                    Tensor(name=name, size_bytes=tensor.size_bytes, producer=tensor.producer, consumers=missing)
                )
    return found
