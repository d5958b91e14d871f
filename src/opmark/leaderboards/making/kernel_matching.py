"""Match the kernels of one network on several targets: find the finest units that are unions of kernels on each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from opmark.core.errors import ContentError
from opmark.core.kernels.graph import Graph, Node
from opmark.leaderboards.problem.graph import disjoint_sets

_INSERTED = "inserted"
# A kernel: the number of its graph, and its node number there.
Kernel = tuple[int, int]


def units_of(graphs: Mapping[str, Graph]) -> tuple[dict[str, tuple[int, ...]], ...]:
    """The node numbers of each unit by target; every unit exists on every target, and no cycle joins two units.

    Kernels are joined by shared names: by node where all graphs are one trace, by original operator within one
    language, by torch module path between languages. A kernel without such a name, without cost, or on some targets
    only joins the neighbouring unit with the nearest module path; makers of its inputs come before readers of its
    outputs.
    Raises `ContentError` where the graphs share no name.
    """
    several = tuple(graphs.values())
    if several and _one_trace(several) and all(_scopes(graph) == _scopes(several[0]) for graph in several):
        # every target runs the same nodes, so the units of one are those of all
        first = next(iter(graphs))
        return tuple(dict.fromkeys(graphs, unit[first]) for unit in _matched({first: graphs[first]}))
    return _matched(graphs)


def _matched(graphs: Mapping[str, Graph]) -> tuple[dict[str, tuple[int, ...]], ...]:
    joined = _Joined(tuple(graphs.values()))
    joined.by_name()
    joined.complete()
    joined.cycles()
    targets = list(graphs)
    units: dict[Kernel, dict[str, list[int]]] = {}
    for number, target in enumerate(targets):
        for node in range(len(graphs[target].nodes)):
            root = joined.sets[number, node]
            units.setdefault(root, {name: [] for name in targets})[target].append(node)
    return tuple({target: tuple(nodes) for target, nodes in unit.items()} for unit in units.values())


class _Joined:
    """Disjoint sets over the kernels of all graphs; each set is on its way to become a unit."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self._kernels = [(number, node) for number, graph in enumerate(graphs) for node in range(len(graph.nodes))]
        self.sets = disjoint_sets(self._kernels)
        self._edges = [list(_edges(graph)) for graph in graphs]
        self._before: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in self._kernels}
        self._after: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in self._kernels}
        for number, edges in enumerate(self._edges):
            for maker, reader in edges:
                self._before[number, reader].append((number, maker))
                self._after[number, maker].append((number, reader))

    def by_name(self) -> None:
        """Join kernels that share the name of a part."""
        part_names = _part_names_of(self.graphs)
        first: dict[str, Kernel] = {}
        holders: dict[str, set[int]] = {}
        for kernel in self._kernels:
            node = self.graphs[kernel[0]].nodes[kernel[1]]
            if node.free:
                continue
            for name in part_names(kernel[1], node):
                holders.setdefault(name, set()).add(kernel[0])
                self.sets.merge(first.setdefault(name, kernel), kernel)
        if not any(len(found) == len(self.graphs) for found in holders.values()):
            names = ", ".join(f"{graph.target or graph.name} ({graph.language})" for graph in self.graphs)
            raise ContentError(
                f"the graphs of {names} share no operator names",
                hint="make both from one zoo name or .pt2 file, so that they share module paths",
            )

    def complete(self) -> None:
        """Join sets that lack a target, or that hold free kernels only, with their neighbours."""
        while True:
            whole = self._whole()
            changed = False
            for kernel in self._kernels:
                if self.sets[kernel] in whole:
                    continue
                neighbour = self._neighbour(kernel, whole)
                if neighbour is not None:
                    joined_whole = self.sets[neighbour] in whole
                    self.sets.merge(kernel, neighbour)
                    if joined_whole:
                        whole.add(self.sets[kernel])
                    changed = True
            if not changed:
                break
        # A kernel without any neighbour (an allocation without a reader) joins the unit that runs before it.
        earliest = next((kernel for kernel in self._kernels if self.sets[kernel] in whole), None)
        for number, graph in enumerate(self.graphs):
            last = None
            for node in range(len(graph.nodes)):
                kernel = (number, node)
                if self.sets[kernel] in whole:
                    last = kernel
                elif earliest is not None:
                    self.sets.merge(kernel, last or earliest)
                    whole.add(self.sets[kernel])

    def cycles(self) -> None:
        """Join units that form a cycle on some target."""
        number = {root: index for index, root in enumerate(sorted({self.sets[kernel] for kernel in self._kernels}))}
        pairs = [
            (number[self.sets[graph, maker]], number[self.sets[graph, reader]])
            for graph, edges in enumerate(self._edges)
            for maker, reader in edges
        ]
        before: dict[int, set[int]] = {}
        for maker, reader in pairs:
            if maker != reader:
                before.setdefault(reader, set()).add(maker)
        try:
            TopologicalSorter(before).prepare()
        except CycleError:
            self._join_cycles(number, pairs)

    def _join_cycles(self, number: Mapping[Kernel, int], pairs: Sequence[tuple[int, int]]) -> None:
        """Join the units on each cycle; `number` numbers the units that `pairs` link."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        rows, columns = np.array(pairs).T
        matrix = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(number), len(number)))
        _, labels = connected_components(matrix, directed=True, connection="strong")
        first: dict[int, Kernel] = {}
        for root, label in zip(number, labels.tolist(), strict=True):
            self.sets.merge(first.setdefault(label, root), root)

    def _whole(self) -> set[Kernel]:
        """The sets with a kernel that takes time on every target."""
        found: dict[Kernel, set[int]] = {}
        for kernel in self._kernels:
            if not self.graphs[kernel[0]].nodes[kernel[1]].free:
                found.setdefault(self.sets[kernel], set()).add(kernel[0])
        return {root for root, targets in found.items() if len(targets) == len(self.graphs)}

    def _neighbour(self, kernel: Kernel, whole: set[Kernel]) -> Kernel | None:
        """The neighbour of `kernel` with the nearest module path; complete ones and makers of its inputs come first.

        Example: one target folds a BatchNorm into the convolution before it. The two stand side by side in the module
        tree, while the reader of the BatchNorm may be a module further away. The padding of a convolution is nearer to
        that convolution than to the activation before it, also while neither has a counterpart.
        """
        own = self.sets[kernel]
        around = [other for other in (*self._before[kernel], *self._after[kernel]) if self.sets[other] != own]

        def nearness(other: Kernel) -> tuple[int, bool]:
            return _shared_path(self._scope(kernel), self._scope(other)), self.sets[other] in whole

        return max(around, key=nearness, default=None)

    def _scope(self, kernel: Kernel) -> str:
        return self.graphs[kernel[0]].nodes[kernel[1]].scope


def _shared_path(one: str, other: str) -> int:
    """Count the leading parts that two module paths share."""
    pairs = enumerate(zip(one.split("."), other.split("."), strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(one.count("."), other.count(".")) + 1)


def _edges(graph: Graph) -> Iterator[tuple[int, int]]:
    """(maker, reader) node numbers."""
    maker: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        yield from ((maker[name], number) for name in node.inputs if name in maker)
        maker |= dict.fromkeys(node.outputs, number)


def _part_names_of(graphs: Sequence[Graph]) -> Callable[[int, Node], tuple[str, ...]]:
    """A function from a kernel (node number and node) to the names of its parts, which all these graphs share."""
    if _one_trace(graphs):
        return lambda number, _: (str(number),)
    if {graph.language for graph in graphs} == {"onnx"}:
        return lambda _, node: tuple(name for name in node.origins if name != _INSERTED)
    return lambda _, node: (node.scope,) if node.scope else ()


def _one_trace(graphs: Sequence[Graph]) -> bool:
    """True where graphs differ in nothing but their kernels, as those of one trace on several targets do."""
    first = graphs[0]
    return all(graph is first or _wiring(graph) == _wiring(first) for graph in graphs)


def _scopes(graph: Graph) -> list[str]:
    return [node.scope for node in graph.nodes]


def _wiring(graph: Graph) -> tuple[object, ...]:
    """Everything about a graph but its kernels."""
    return (graph.language, *((node.name, node.inputs, node.outputs, node.free, node.phase) for node in graph.nodes))
