"""Errors on whole unseen networks, split into those of kernels and those of their sum, and a baseline without kernels.

The baseline is a ridge regression on counts of operators. On NAS-Bench-201, twenty runs suffice for it to rank networks
better than most published predictors: a predictor of kernels must beat it to be worth its measurements.
"""

from collections.abc import Sequence

import numpy as np

from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.predictors.inputs.arrays import Flags, Floats
from opmark.predictors.inputs.graphs import network_class
from opmark.predictors.inputs.tables import measured_kernels
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.learners.ridge import fit_ridge
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.metrics import METRICS, all_metrics
from opmark.predictors.model.network import predict_network, replaced
from opmark.predictors.model.training import train_on

# The sum of measured kernels counts if they take at least this share of the network's predicted time.
_LEAST_MEASURED = 0.9
# Error of the prediction against the sum of measured kernels, and of that sum against the network.
KERNEL_SUM, COMPOSITION = "kernel-sum", "composition"
# Separates the name of a metric from the class of networks that it covers.
OF_CLASS = "@"
OP_COUNTS = "op-counts"
_PENALTY = 1.0
_FEWEST_NETWORKS = 3


def judge_networks(evidence: Evidence, estimator: str) -> Judged | None:
    """Predict unseen networks after learning from kernels that occur in none of them; None without such networks.

    Network constants are fitted on training networks, unless the estimator stands for the plain sum.
    """
    unseen = evidence.unseen
    if not unseen:
        return None
    real = frozenset().union(*evidence.context.network_kernels.values())
    bundle = train_on(
        [row for row in evidence.measurements if row.kernel.key not in real],
        evidence.target,
        estimator=estimator,
        learner=evidence.learner(estimator),
        hardware=evidence.hardware,
        networks=evidence.networks,
        graphs=evidence.graphs,
        fusion=evidence.fusion,
    )
    model = CostModel(evidence.as_stored(bundle, estimator), missing=BYTES_MOVED)
    measured = measured_kernels(evidence.measurements)
    graphs = [graph for one in unseen if (graph := evidence.graph(one)) is not None]
    predictions = [model.network(graph) for graph in graphs]
    return Judged(
        kinds=tuple(one.network if one.batch == 1 else f"{one.network} batch {one.batch}" for one in unseen),
        families=tuple(one.family for one in unseen),
        measured_ns=np.array([one.latency_ns for one in unseen], dtype=np.float64),
        predicted_ns=np.array([prediction.total_ns for prediction in predictions]),
        variation=np.full(len(unseen), np.nan),
        low_ns=np.array([prediction.low_ns for prediction in predictions]),
        high_ns=np.array([prediction.high_ns for prediction in predictions]),
        kernel_sum_ns=np.array([kernel_sum_ns(graph, model, bundle, measured) for graph in graphs]),
        classes=tuple(network_class(graph) for graph in graphs),
    )


def kernel_sum_ns(graph: Graph, model: CostModel, bundle: Bundle, measured: dict[Kernel, tuple[float, float]]) -> float:
    """Compute the network's latency from measured kernels; NaN where too few were measured."""
    graph = model.as_run(graph).graph
    parts = model.parts(graph)
    each = parts.hot_ns * parts.counts
    known = np.array([kernel in measured for kernel in parts.kernels], dtype=bool)
    if each.sum() <= 0 or each[known].sum() / each.sum() < _LEAST_MEASURED:
        return float("nan")
    return predict_network(graph, replaced(parts, measured), bundle.manifest).total_ns


def split_errors(judged: Judged) -> dict[str, tuple[float, int]]:
    """Compute the metrics of both halves of the networks' error, each with its number of networks."""
    if judged.kernel_sum_ns is None:
        return {}
    return _halves(judged, judged.kernel_sum_ns, np.ones(len(judged.kinds), dtype=bool))


def class_errors(judged: Judged) -> dict[str, tuple[float, int]]:
    """Compute the metrics of each class of networks and their halves, as `METRIC@CLASS`; none for a single class."""
    names = sorted(set(judged.classes))
    if len(names) < 2 or judged.kernel_sum_ns is None:
        return {}
    found: dict[str, tuple[float, int]] = {}
    for name in names:
        own = np.array([one == name for one in judged.classes], dtype=bool)
        count = int(own.sum())
        whole = all_metrics(judged.measured_ns[own], judged.predicted_ns[own])
        values = {metric: (value, count) for metric, value in whole.items()}
        values |= _halves(judged, judged.kernel_sum_ns, own)
        found |= {f"{metric}{OF_CLASS}{name}": value for metric, value in values.items()}
    return found


def _halves(judged: Judged, kernel_sums: Floats, chosen: Flags) -> dict[str, tuple[float, int]]:
    known = np.isfinite(kernel_sums) & chosen
    if not known.any():
        return {}
    sums, measured, predicted = (values[known] for values in (kernel_sums, judged.measured_ns, judged.predicted_ns))
    pairs: dict[str, tuple[Floats, Floats]] = {KERNEL_SUM: (sums, predicted), COMPOSITION: (measured, sums)}
    return {
        f"{half}-{name}": (metric(truth, answer), int(known.sum()))
        for half, (truth, answer) in pairs.items()
        for name, metric in METRICS.items()
    }


def judge_op_counts(evidence: Evidence) -> Judged | None:
    """Learn log latency from counts in training networks, and predict unseen ones; None if either are missing."""
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
    return Judged(
        kinds=tuple(one.network for one in unseen),
        families=tuple(one.family for one in unseen),
        measured_ns=np.array([one.latency_ns for one in unseen], dtype=np.float64),
        predicted_ns=np.exp(fit_ridge(known, target, _PENALTY).predict(rows)),
        variation=np.full(len(unseen), np.nan),
    )


def _columns(graphs: Sequence[Graph], kinds: Sequence[str]) -> Floats:
    """Make one row per graph: log FLOPs, log bytes, and log counts of kernels of each kind."""
    rows = []
    for graph in graphs:
        counts = dict.fromkeys(kinds, 0)
        for node in graph.costly:
            if node.kernel.kind in counts:
                counts[node.kernel.kind] += 1
        work = graph.work
        rows.append(np.log1p([float(work.flops), float(work.moved_bytes), *map(float, counts.values())]))
    return np.array(rows)
