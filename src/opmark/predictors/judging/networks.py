"""Whole networks nobody sampled from: how far off a prediction is, and whether kernels or their sum are to blame."""

import numpy as np

from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.predictors.inputs.arrays import Flags, Floats
from opmark.predictors.inputs.reuse import network_class
from opmark.predictors.judging.evidence import Evidence, Judged
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.metrics import METRICS, all_metrics
from opmark.predictors.model.network import predict_network, replaced
from opmark.predictors.model.training import measured_kernels, train_on

# The sum of measured kernels says something of a network whose kernels were measured for this share of its time.
_LEAST_MEASURED = 0.9
# Error of the prediction against the sum of measured kernels, and of that sum against the network.
KERNEL_SUM, COMPOSITION = "kernel-sum", "composition"
# Between the name of a metric and the class of networks that it is over.
OF_CLASS = "@"


def judge_networks(evidence: Evidence, estimator: str) -> Judged | None:
    """Predict whole networks from kernels none of which occur in them; None where no unseen network is known.

    Constants of the sum come from training networks, by the recipe of the estimator: nn-Meter's is the plain sum.
    """
    unseen = evidence.unseen
    if not unseen:
        return None
    real = frozenset().union(*evidence.context.network_kernels.values())
    bundle = train_on(
        [row for row in evidence.measurements if row.kernel.key not in real],
        evidence.target,
        estimator=estimator,
        hardware=evidence.hardware,
        networks=evidence.networks,
        graphs=evidence.graphs,
    )
    model = CostModel(bundle, missing=BYTES_MOVED)
    measured = measured_kernels(evidence.measurements)
    graphs = [graph for one in unseen if (graph := evidence.graph(one)) is not None]
    predictions = [model.network(graph) for graph in graphs]
    return Judged(
        kinds=tuple(one.network if one.batch == 1 else f"{one.network} batch {one.batch}" for one in unseen),
        measured_ns=np.array([one.latency_ns for one in unseen], dtype=np.float64),
        predicted_ns=np.array([prediction.total_ns for prediction in predictions]),
        variation=np.full(len(unseen), np.nan),
        low_ns=np.array([prediction.low_ns for prediction in predictions]),
        high_ns=np.array([prediction.high_ns for prediction in predictions]),
        kernel_sum_ns=np.array([kernel_sum_ns(graph, model, bundle, measured) for graph in graphs]),
        classes=tuple(network_class(graph) for graph in graphs),
    )


def kernel_sum_ns(graph: Graph, model: CostModel, bundle: Bundle, measured: dict[Kernel, tuple[float, float]]) -> float:
    """The network's latency if its kernels took what was measured; NaN where that is known of too little of it."""
    parts = model.parts(graph)
    each = parts.hot_ns * parts.counts
    known = np.array([kernel in measured for kernel in parts.kernels], dtype=bool)
    if each.sum() <= 0 or each[known].sum() / each.sum() < _LEAST_MEASURED:
        return float("nan")
    return predict_network(graph, replaced(parts, measured), bundle.manifest).total_ns


def split_errors(judged: Judged) -> dict[str, tuple[float, int]]:
    """Metrics of the two halves of a network's error, each with the number of networks it is over."""
    if judged.kernel_sum_ns is None:
        return {}
    return _halves(judged, judged.kernel_sum_ns, np.ones(len(judged.kinds), dtype=bool))


def class_errors(judged: Judged) -> dict[str, tuple[float, int]]:
    """The metrics of each class of networks alone, and their two halves, as `METRIC@CLASS`; none for a single class."""
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
