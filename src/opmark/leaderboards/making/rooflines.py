"""Price kernels with rooflines: time per FLOP, per byte and per call, by kind.

Williams, Waterman, Patterson: "Roofline: An Insightful Visual Performance Model", CACM 52 (2009). The three terms are
added, as in fitted rooflines.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opmark.core.kernels.graph import Graph, Node
from opmark.core.kernels.kernel import Kernel

# The name of the roofline for all kinds without one of their own.
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRoofline:
    """ns per FLOP, per byte and per call of one kind; a prediction's interval is a factor of e^±`half_width`."""

    ns_per_flop: float
    ns_per_byte: float
    constant_ns: float
    least_ns: float = 1.0
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRow:
    """One distinct kernel: the latency of a call and its interval, in ns."""

    kernel: Kernel
    ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RooflineCost:
    """The cost of a network: the sum over its nodes."""

    total_ns: float
    node_ns: npt.NDArray[np.float64]
    rows: tuple[RooflineRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineCosts:
    """Rooflines by kind or `kind:dtype`; `*` is for all other kinds."""

    rooflines: Mapping[str, KindRoofline]

    def network(self, graph: Graph) -> RooflineCost:
        """Predict the latency of `graph` as the sum of its kernels."""
        rows: dict[Kernel, RooflineRow] = {}
        each = np.zeros(len(graph.nodes))
        for number, node in enumerate(graph.nodes):
            if node.free:
                continue
            row = rows.get(node.kernel)
            if row is None:
                row = rows[node.kernel] = self._row(node)
            each[number] = row.ns
        return RooflineCost(total_ns=float(each.sum()), node_ns=each, rows=tuple(rows.values()))

    def _row(self, node: Node) -> RooflineRow:
        found = self._roofline(node.kernel)
        ns = node.work.flops * found.ns_per_flop + node.work.moved_bytes * found.ns_per_byte + found.constant_ns
        ns = max(ns, found.least_ns)
        wide = float(np.exp(found.half_width))
        return RooflineRow(kernel=node.kernel, ns=ns, low_ns=ns / wide, high_ns=ns * wide)

    def _roofline(self, kernel: Kernel) -> KindRoofline:
        dtype = str(kernel.params.get("dtype", ""))
        names = (f"{kernel.kind}:{dtype}", kernel.kind, f"{ANY}:{dtype}", ANY)
        return next(self.rooflines[name] for name in names if name in self.rooflines)
