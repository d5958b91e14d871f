"""The baseline of whole networks that needs no kernel at all: ridge regression on counts of operators.

On NAS-Bench-201 twenty runs of it rank networks better than most published predictors do: what a kernel-wise predictor
has to beat to be worth its measurements. Its rows stand under `networks-unseen` as `op-counts`.
"""

from collections.abc import Sequence

import numpy as np

from opmark.core.graph import Graph
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.judging.evidence import Evidence, Judged

OP_COUNTS = "op-counts"
_RIDGE = 1.0
_FEWEST_NETWORKS = 3


def judge_op_counts(evidence: Evidence) -> Judged | None:
    """Learn log latency of the training networks, predict the unseen ones; None where either are missing."""
    training = [
        (one.latency_ns, graph)
        for one in evidence.networks
        if one.role == "training" and one.latency_ns and (graph := evidence.graph(one)) is not None
    ]
    unseen = evidence.unseen
    if len(training) < _FEWEST_NETWORKS or not unseen:
        return None
    asked = [graph for one in unseen if (graph := evidence.graph(one)) is not None]
    kinds = sorted({node.kernel.kind for _, graph in training for node in graph.costly})
    known, rows = (_columns(graphs, kinds) for graphs in ([graph for _, graph in training], asked))
    target = np.log(np.array([latency for latency, _ in training], dtype=np.float64))
    centre, deviation = known.mean(axis=0), known.std(axis=0)
    scale = np.where(deviation > 1e-9, deviation, 1.0)
    standard = (known - centre) / scale
    gram = standard.T @ standard + _RIDGE * np.eye(standard.shape[1])
    slopes = np.linalg.solve(gram, standard.T @ (target - target.mean()))
    predicted = target.mean() + (rows - centre) / scale @ slopes
    return Judged(
        kinds=tuple(one.network for one in unseen),
        measured_ns=np.array([one.latency_ns for one in unseen], dtype=np.float64),
        predicted_ns=np.exp(np.clip(predicted, target.min() - 3.0, target.max() + 3.0)),
        variation=np.full(len(unseen), np.nan),
    )


def _columns(graphs: Sequence[Graph], kinds: Sequence[str]) -> Floats:
    """Log FLOPs and bytes of a network, and the log of how many kernels of each kind it has."""
    rows = []
    for graph in graphs:
        counts = dict.fromkeys(kinds, 0)
        for node in graph.costly:
            if node.kernel.kind in counts:
                counts[node.kernel.kind] += 1
        work = graph.work
        rows.append(np.log1p([float(work.flops), float(work.moved_bytes), *map(float, counts.values())]))
    return np.array(rows)
