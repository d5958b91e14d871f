"""Units: the finest grouping of original operators that is a union of kernels on every target."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from opmark.core.errors import ContentError
from opmark.core.graph import Graph, Node

_INSERTED = "inserted"
# A kernel: the number of its graph, and its number there.
Kernel = tuple[int, int]


def units_of(graphs: Mapping[str, Graph]) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Each unit's node numbers by target, every unit present on every target; the quotient graph has no cycle.

    Kernels are joined by what they share: the node itself where all graphs are one trace, original operators within a
    language, torch module paths between languages. What has no such name, costs nothing, or exists on some targets only
    joins the unit beside it that is nearest by module path, a maker of its inputs before a reader of its outputs.
    Raises `ContentError` where the graphs have no name in common.
    """
    joined = _Joined(tuple(graphs.values()))
    joined.by_name()
    joined.complete()
    joined.cycles()
    targets = list(graphs)
    units: dict[Kernel, dict[str, list[int]]] = {}
    for number, target in enumerate(targets):
        for node in range(len(graphs[target].nodes)):
            root = joined.root((number, node))
            units.setdefault(root, {name: [] for name in targets})[target].append(node)
    return tuple({target: tuple(nodes) for target, nodes in unit.items()} for unit in units.values())


class _Joined:
    """A union-find over the kernels of all graphs."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self._parent: dict[Kernel, Kernel] = {
            (number, node): (number, node) for number, graph in enumerate(graphs) for node in range(len(graph.nodes))
        }
        self._edges = [list(_edges(graph)) for graph in graphs]
        self._before: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in self._parent}
        self._after: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in self._parent}
        for number, edges in enumerate(self._edges):
            for maker, reader in edges:
                self._before[number, reader].append((number, maker))
                self._after[number, maker].append((number, reader))

    def root(self, kernel: Kernel) -> Kernel:
        """The kernel that stands for the group."""
        path = []
        while self._parent[kernel] != kernel:
            path.append(kernel)
            kernel = self._parent[kernel]
        for passed in path:
            self._parent[passed] = kernel
        return kernel

    def join(self, one: Kernel, other: Kernel) -> None:
        """Make two groups one; the earliest kernel stands for it."""
        low, high = sorted((self.root(one), self.root(other)))
        self._parent[high] = low

    def by_name(self) -> None:
        """Join kernels that share an atom."""
        atoms = _atoms_of(self.graphs)
        first: dict[str, Kernel] = {}
        holders: dict[str, set[int]] = {}
        for kernel in self._parent:
            node = self.graphs[kernel[0]].nodes[kernel[1]]
            if node.free:
                continue
            for atom in atoms(kernel[1], node):
                holders.setdefault(atom, set()).add(kernel[0])
                self.join(first.setdefault(atom, kernel), kernel)
        if not any(len(found) == len(self.graphs) for found in holders.values()):
            names = ", ".join(f"{graph.target or graph.name} ({graph.language})" for graph in self.graphs)
            raise ContentError(
                f"the graphs of {names} share no operator names",
                hint="make both from one zoo name or .pt2 file, so that they share module paths",
            )

    def complete(self) -> None:
        """Join what is missing on some target, or has nothing but free kernels, with its neighbours."""
        while True:
            whole = self._whole()
            changed = False
            for kernel in self._parent:
                if self.root(kernel) in whole:
                    continue
                neighbour = self._neighbour(kernel, whole)
                if neighbour is not None:
                    joined_whole = self.root(neighbour) in whole
                    self.join(kernel, neighbour)
                    if joined_whole:
                        whole.add(self.root(kernel))
                    changed = True
            if not changed:
                break
        # What nothing joins to the rest (an allocation that nobody reads) goes with what runs before it.
        for number, graph in enumerate(self.graphs):
            last = None
            for node in range(len(graph.nodes)):
                kernel = (number, node)
                if self.root(kernel) in whole:
                    last = kernel
                elif last is not None or whole:
                    self.join(kernel, last or min(whole))

    def cycles(self) -> None:
        """Join units that wait for one another on some target."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        number = {root: index for index, root in enumerate(sorted({self.root(kernel) for kernel in self._parent}))}
        pairs = [
            (number[self.root((graph, maker))], number[self.root((graph, reader))])
            for graph, edges in enumerate(self._edges)
            for maker, reader in edges
        ]
        if not pairs:
            return
        rows, columns = np.array(pairs).T
        matrix = csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(number), len(number)))
        _, labels = connected_components(matrix, directed=True, connection="strong")
        first: dict[int, Kernel] = {}
        for root, label in zip(number, labels.tolist(), strict=True):
            self.join(first.setdefault(label, root), root)

    def _whole(self) -> set[Kernel]:
        """The groups that have a kernel that takes time on every target."""
        found: dict[Kernel, set[int]] = {}
        for kernel in self._parent:
            if not self.graphs[kernel[0]].nodes[kernel[1]].free:
                found.setdefault(self.root(kernel), set()).add(kernel[0])
        return {root for root, targets in found.items() if len(targets) == len(self.graphs)}

    def _neighbour(self, kernel: Kernel, whole: set[Kernel]) -> Kernel | None:
        """The whole unit next to `kernel` that is nearest by module path; makers of its inputs before readers.

        A BatchNorm that one target folds into the convolution before it stands beside it in the module tree, while
        what reads it may be a module further away.
        """
        own = self.root(kernel)
        around = [other for other in (*self._before[kernel], *self._after[kernel]) if self.root(other) != own]
        near = [other for other in around if self.root(other) in whole] or around
        return max(near, key=lambda other: _shared_path(self._scope(kernel), self._scope(other)), default=None)

    def _scope(self, kernel: Kernel) -> str:
        return self.graphs[kernel[0]].nodes[kernel[1]].scope


def _shared_path(one: str, other: str) -> int:
    """How many leading parts two module paths share."""
    pairs = enumerate(zip(one.split("."), other.split("."), strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(one.count("."), other.count(".")) + 1)


def _edges(graph: Graph) -> Iterator[tuple[int, int]]:
    """(maker, reader) node numbers."""
    maker: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        yield from ((maker[name], number) for name in node.inputs if name in maker)
        maker |= dict.fromkeys(node.outputs, number)


def _atoms_of(graphs: Sequence[Graph]) -> Callable[[int, Node], tuple[str, ...]]:
    """What names the parts of a kernel (its number and node) in a way that all these graphs share."""
    if all(_wiring(graph) == _wiring(graphs[0]) for graph in graphs):
        return lambda number, _: (str(number),)
    if {graph.language for graph in graphs} == {"onnx"}:
        return lambda _, node: tuple(name for name in node.origins if name != _INSERTED)
    return lambda _, node: (node.scope,) if node.scope else ()


def _wiring(graph: Graph) -> tuple[object, ...]:
    """The nodes and what they hand on, whichever kernels do it: one trace on two targets differs in kernels alone."""
    return (graph.language, *((node.name, node.inputs, node.outputs, node.free, node.phase) for node in graph.nodes))
