"""How good estimators are: estimator × split × metric, beside the noise floor of the measurement itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from opmark.core.graph import Graph
from opmark.core.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.target import Target
from opmark.predictors.arrays import Floats
from opmark.predictors.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.hardware import Hardware
from opmark.predictors.intervals import calibrate, outside, training_range
from opmark.predictors.metrics import all_metrics, coverage
from opmark.predictors.single_thread import single_thread
from opmark.predictors.split import NETWORKS_UNSEEN, SPLIT_NAMES, Context, split_rows
from opmark.predictors.train import tables, train_on

# A kind with fewer rows to learn from says nothing about an estimator.
_LEAST_TRAINING_ROWS = 8
COVERAGE90 = "coverage90"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One cell of the table. `noise_floor` is the metric of one measurement against another, None where unknown."""

    target: str
    estimator: str
    split: str
    metric: str
    value: float
    n: int
    noise_floor: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Measured and predicted latencies of the rows that judged, all kinds together; intervals where there are any."""

    kinds: tuple[str, ...]
    measured_ns: Floats
    predicted_ns: Floats
    variation: Floats
    low_ns: Floats | None = None
    high_ns: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What there is to evaluate on: one target's rows, and networks with their graphs by id or name."""

    target: Target
    measurements: Sequence[Measurement]
    hardware: Hardware = field(default_factory=Hardware)
    networks: Sequence[NetworkMeasurement] = ()
    graphs: Mapping[str, Graph] = field(default_factory=dict)

    @property
    def unseen(self) -> list[NetworkMeasurement]:
        """Measured networks that no constant was fitted on and whose graph is known."""
        return [
            one
            for one in self.networks
            if one.role != "training" and one.status in USABLE and one.latency_ns and self.graph(one) is not None
        ]

    def graph(self, network: NetworkMeasurement) -> Graph | None:
        """The graph of a network, if it was given."""
        return self.graphs.get(network.graph_id) or self.graphs.get(network.network)


def evaluate(
    evidence: Evidence, *, estimators: Sequence[str] = ("lightgbm",), splits: Sequence[str] = SPLIT_NAMES
) -> list[Score]:
    """Every metric of every estimator on every split that the evidence has rows for.

    Intervals are scored (`coverage90`) for estimators that calibrate while they fit. Raises `UnknownNameError`.
    """
    scores: list[Score] = []
    for name in estimators:
        for split in splits:
            with single_thread():
                found = judge_networks(evidence, name) if split == NETWORKS_UNSEEN else judge(evidence, name, split)
            if found is not None:
                scores += _scores(evidence.target.name, name, split, found)
    return scores


def judge(evidence: Evidence, estimator: str, split: str) -> Judged | None:
    """Fit each kind on one side of `split` and predict the other; None where no kind has two sides."""
    learner = ESTIMATORS.load(estimator)
    kinds: list[str] = []
    columns: list[Floats] = []
    calibrated = True
    context = _context(evidence)
    for kind, table in tables(evidence.measurements, evidence.hardware).items():
        judging = split_rows(split, table.inputs, context)
        if not judging.any() or int((~judging).sum()) < _LEAST_TRAINING_ROWS:
            continue
        training, test = table.take(~judging), table.take(judging)
        fitted = learner.fit(training.inputs, training.labels)
        predicted = fitted.predict(test.inputs).hot_ns
        width = np.zeros_like(predicted)
        if fitted.held_out is None:
            calibrated = False
        else:
            errors, _ = calibrate(learner, fitted, training.inputs, training.labels)
            beyond = outside(test.inputs, training_range(training.inputs))
            width = np.where(beyond, errors.extrapolated_half_width, errors.half_width)
        kinds += [kind] * len(predicted)
        columns.append(np.column_stack([test.labels.hot_ns, predicted, test.variation, width]))
    if not columns:
        return None
    measured, predicted, variation, width = np.vstack(columns).T
    return Judged(
        kinds=tuple(kinds),
        measured_ns=measured,
        predicted_ns=predicted,
        variation=variation,
        low_ns=predicted * np.exp(-width) if calibrated else None,
        high_ns=predicted * np.exp(width) if calibrated else None,
    )


def judge_networks(evidence: Evidence, estimator: str) -> Judged | None:
    """Predict whole networks from kernels none of which occur in them; None where no unseen network is known."""
    unseen = evidence.unseen
    if not unseen:
        return None
    real = frozenset().union(*_context(evidence).network_kernels.values())
    rows = [row for row in evidence.measurements if row.kernel.key not in real]
    bundle = train_on(
        rows,
        evidence.target,
        estimator=estimator,
        hardware=evidence.hardware,
        networks=evidence.networks,
        graphs=evidence.graphs,
    )
    model = CostModel(bundle, missing=BYTES_MOVED)
    predictions = [model.network(graph) for one in unseen if (graph := evidence.graph(one)) is not None]
    return Judged(
        kinds=tuple(one.network for one in unseen),
        measured_ns=np.array([one.latency_ns for one in unseen], dtype=np.float64),
        predicted_ns=np.array([prediction.total_ns for prediction in predictions]),
        variation=np.full(len(unseen), np.nan),
        low_ns=np.array([prediction.low_ns for prediction in predictions]),
        high_ns=np.array([prediction.high_ns for prediction in predictions]),
    )


def noise_floor(measured_ns: Floats, variation: Floats) -> dict[str, float | None]:
    """Every metric of a second measurement against the first, the two apart by the variation between processes.

    The second reads longer and shorter in turn, so that no bias is made up. None where no variation is known.
    """
    known = np.isfinite(variation)
    if not known.any():
        return {}
    first = measured_ns[known]
    sign = np.where(np.arange(len(first)) % 2 == 0, 1.0, -1.0)
    return dict(all_metrics(first, first * np.exp(sign * variation[known])))


def by_kind(judged: Judged) -> dict[str, dict[str, float]]:
    """Every metric of each kind's rows alone."""
    names = np.array(judged.kinds)
    return {
        kind: all_metrics(judged.measured_ns[names == kind], judged.predicted_ns[names == kind])
        for kind in sorted(set(judged.kinds))
    }


def _scores(target: str, estimator: str, split: str, judged: Judged) -> list[Score]:
    floor = noise_floor(judged.measured_ns, judged.variation)
    values = all_metrics(judged.measured_ns, judged.predicted_ns)
    if judged.low_ns is not None and judged.high_ns is not None:
        values[COVERAGE90] = coverage(judged.measured_ns, judged.low_ns, judged.high_ns)
    return [
        Score(
            target=target,
            estimator=estimator,
            split=split,
            metric=metric,
            value=value,
            n=len(judged.kinds),
            noise_floor=floor.get(metric),
        )
        for metric, value in values.items()
    ]


def _context(evidence: Evidence) -> Context:
    kernels = {}
    for one in evidence.unseen:
        graph = evidence.graph(one)
        if graph is not None:
            kernels[one.network] = frozenset(node.kernel.key for node in graph.costly)
    return Context(network_kernels=kernels)
