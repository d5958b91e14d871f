"""Make a problem: kernels of a network on every target become units, predicted latencies their costs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from opmark.core.cluster import Cluster
from opmark.core.errors import ContentError
from opmark.core.graph import Graph
from opmark.leaderboards.making.aliases import aliases
from opmark.leaderboards.making.boundaries import boundary_of, unit_layout_ns
from opmark.leaderboards.making.kernel_matching import units_of
from opmark.leaderboards.problem.prediction_error import error_factors, shape_group_of, weighted_interval
from opmark.leaderboards.problem.problem import Problem, Provenance, Tensor, Unit


class NetworkCost(Protocol):
    """What a cost model says of a network, in ns; `node_ns` has one entry per node."""

    @property
    def total_ns(self) -> float:
        """The whole network."""

    @property
    def node_ns(self) -> npt.NDArray[np.float64]:
        """Each node of the graph, 0 for a free one."""


class Costs(Protocol):
    """A cost model of one target, such as `opmark.predictors.model.cost_model.CostModel`."""

    def network(self, graph: Graph) -> NetworkCost:
        """The latency of `graph` on this target."""


def make_problem(
    name: str,
    graphs: Mapping[str, Graph],
    cluster: Cluster,
    costs: Mapping[str, Costs],
    *,
    model: str = "",
    family: str = "",
    bundles: Mapping[str, str] | None = None,
) -> Problem:
    """The problem of running one network on `cluster`; `graphs` and `costs` are by target name.

    Tensors and weights are those of the host's own graph. A unit's workspace is what its kernels hand to one another;
    `boundary_ns` is what the layout reorder costs that a target needs where a unit hands on a blocked tensor.
    Raises `ContentError` where a device names a target without graph or costs.
    """
    target_of = _targets(cluster, graphs, costs)
    used = {target: graphs[target] for target in dict.fromkeys(target_of.values())}
    groups = units_of(used)
    predicted = {target: costs[target].network(graph) for target, graph in used.items()}
    node_ns = {target: _node_ns(predicted[target]) for target in used}
    spread = {target: error_factors(graph, predicted[target]) for target, graph in used.items()}
    host = cluster.host or cluster.devices[0].name
    main = next(device.target for device in cluster.devices if device.name == host)
    names = _names(used[main], [group[main] for group in groups])
    tensors, inside = _tensors(used[main], [group[main] for group in groups], names)
    tensors += _other_edges({target: graph for target, graph in used.items() if target != main}, groups, names, tensors)
    layouts = {
        kind: unit_layout_ns(used[target], [g[target] for g in groups], names, costs[target])
        for kind, target in target_of.items()
    }
    tensors = [replace(tensor, boundary_ns=boundary_of(tensor, layouts)) for tensor in tensors]
    weights, whole = used[main].weights, aliases(used[main])
    units = tuple(
        Unit(
            name=unit,
            exec_ns={kind: round(sum(node_ns[target][n] for n in group[target])) for kind, target in target_of.items()},
            weights=tuple(
                sorted({whole.get(w, w) for n in group[main] for w in used[main].nodes[n].inputs} & weights.keys())
            ),
            workspace_bytes=inside[unit],
            phase=used[main].nodes[group[main][0]].phase,
            kind=used[main].nodes[dearest].kernel.kind,
            interval={
                kind: weighted_interval([(node_ns[target][n], spread[target][n]) for n in group[target]])
                for kind, target in target_of.items()
                if spread[target]
            },
            shape_group=shape_group_of(used[main].nodes[dearest].kernel) if spread[main] else "",
        )
        for unit, group in zip(names, groups, strict=True)
        for dearest in [max(group[main], key=lambda n: (node_ns[main][n], -n))]
    )
    provenance = Provenance(
        model=model or used[main].name,
        family=family,
        bundles=bundles or {},
        graphs={target: graph.id for target, graph in used.items()},
    )
    needed = {weight for unit in units for weight in unit.weights}
    return Problem(
        name=name,
        cluster=cluster,
        units=units,
        tensors=tuple(tensors),
        weights={weight: spec.size_bytes for weight, spec in weights.items() if weight in needed},
        provenance=provenance,
    ).checked(name)


def _targets(cluster: Cluster, graphs: Mapping[str, Graph], costs: Mapping[str, Costs]) -> dict[str, str]:
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
    """Predicted ns per node; what belongs to the network as a whole is spread over the nodes by their share."""
    each: list[float] = np.asarray(prediction.node_ns, dtype=np.float64).tolist()
    total = sum(each)
    return [value * prediction.total_ns / total for value in each] if total > 0 else each


def _names(graph: Graph, groups: list[tuple[int, ...]]) -> list[str]:
    """A unit is called after its first kernel that takes time."""
    names: dict[str, None] = {}
    for nodes in groups:
        first = next((n for n in nodes if not graph.nodes[n].free), nodes[0])
        name = graph.nodes[first].name
        names[name if name not in names else f"{name}#{len(names)}"] = None
    return list(names)


def _tensors(graph: Graph, groups: list[tuple[int, ...]], names: list[str]) -> tuple[list[Tensor], dict[str, int]]:
    """The tensors that cross a unit's edge, and per unit the bytes that do not, views aside."""
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
    groups: tuple[dict[str, tuple[int, ...]], ...],
    names: list[str],
    tensors: list[Tensor],
) -> list[Tensor]:
    """What only another target's graph hands from one unit to another: precedence must hold on every target."""
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
