"""What kernels cost on a device of which only rooflines are known: time per FLOP, per byte and per call, by kind."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.core.graph import Graph, Node
from opmark.core.kernel import Kernel
from opmark.leaderboards.making.device_table import ANY, KindRoofline


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One distinct kernel: one call, and the interval around it, in ns."""

    kernel: Kernel
    ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableCost:
    """A network's cost: the sum over its nodes."""

    total_ns: float
    node_ns: npt.NDArray[np.float64]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCosts:
    """Rooflines by kind or `kind:dtype`, `*` for all other kinds.

    Williams, Waterman, Patterson: Roofline. CACM 52 (2009); the sum of the terms, as fitted ones are.
    """

    rooflines: Mapping[str, KindRoofline]

    def network(self, graph: Graph) -> TableCost:
        """The latency of `graph`, every kernel by itself."""
        rows: dict[Kernel, TableRow] = {}
        each = np.zeros(len(graph.nodes))
        for number, node in enumerate(graph.nodes):
            if node.free:
                continue
            row = rows.get(node.kernel)
            if row is None:
                row = rows[node.kernel] = self._row(node)
            each[number] = row.ns
        return TableCost(total_ns=float(each.sum()), node_ns=each, rows=tuple(rows.values()))

    def _row(self, node: Node) -> TableRow:
        found = self._roofline(node.kernel)
        ns = node.work.flops * found.ns_per_flop + node.work.moved_bytes * found.ns_per_byte + found.constant_ns
        ns = max(ns, found.least_ns)
        wide = float(np.exp(found.half_width))
        return TableRow(kernel=node.kernel, ns=ns, low_ns=ns / wide, high_ns=ns * wide)

    def _roofline(self, kernel: Kernel) -> KindRoofline:
        dtype = str(kernel.params.get("dtype", ""))
        names = (f"{kernel.kind}:{dtype}", kernel.kind, f"{ANY}:{dtype}", ANY)
        return next(self.rooflines[name] for name in names if name in self.rooflines)
