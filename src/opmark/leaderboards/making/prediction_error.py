"""The predictors' intervals as factors of a unit's time, and which units are mispredicted together."""

import math
from collections.abc import Sequence
from typing import Any

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel

Factors = tuple[float, float]


def error_factors(graph: Graph, prediction: Any) -> list[Factors]:
    """(low, high) around 1 per node of the graph; nothing where the prediction has no rows with intervals."""
    rows = getattr(prediction, "rows", ())
    known = {row.kernel: (row.low_ns / row.ns, row.high_ns / row.ns) for row in rows if row.ns > 0 and row.low_ns > 0}
    return [known.get(node.kernel, (1.0, 1.0)) for node in graph.nodes] if known else []


def weighted_interval(parts: Sequence[tuple[float, Factors]]) -> Factors:
    """The interval of a sum of (ns, factors) whose errors go together: the mean of their logarithms, by time."""
    total = sum(ns for ns, _ in parts)
    if total <= 0:
        return 1.0, 1.0
    low, high = (math.exp(sum(ns * math.log(factors[side]) for ns, factors in parts) / total) for side in (0, 1))
    return round(min(1.0, low), 6), round(max(1.0, high), 6)


def shape_group_of(kernel: Kernel) -> str:
    """The group of shapes whose errors a kernel shares."""
    from opmark.predictors.inputs.shape_groups import shape_groups

    return shape_groups([kernel])[0]
