"""Training: one learner per kind from a release's rows, and the network constants from its training networks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opmark.core.errors import NothingSelectedError
from opmark.core.graph import Graph
from opmark.core.kernel import Kernel
from opmark.core.measurement import OK, USABLE, Measurement, NetworkMeasurement
from opmark.core.target import Target
from opmark.kinds import KINDS
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Inputs, features
from opmark.predictors.inputs.hardware import Hardware, hardware_of
from opmark.predictors.inputs.reuse import footprint_bytes, network_class, weight_shares
from opmark.predictors.inputs.single_thread import single_thread
from opmark.predictors.learners.estimator import Estimator, Latencies
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.bundle import Bundle, KindEntry, KindPredictor, Manifest, Origin, versions
from opmark.predictors.model.constant_fit import fit_constants
from opmark.predictors.model.constants import PLAIN_SUM, NetworkConstants, NetworkSum
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.intervals import calibrate, training_range
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.network import replaced, sum_deviation

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The usable rows of one kind. Rotated labels and variations between processes are NaN where unknown."""

    inputs: Inputs
    labels: Latencies
    variation: Floats

    def take(self, rows: Any) -> "Table":
        """Some rows: indices or a mask."""
        return Table(
            inputs=self.inputs.take(rows),
            labels=Latencies(hot_ns=self.labels.hot_ns[rows], rotated_ns=self.labels.rotated_ns[rows]),
            variation=self.variation[rows],
        )


def tables(measurements: Sequence[Measurement], hardware: Hardware) -> dict[str, Table]:
    """The usable rows by kind, ordered by kernel key; of a kernel measured twice, the row that settled."""
    by_kind: dict[str, dict[str, Measurement]] = {}
    for row in measurements:
        if row.status in USABLE:
            rows = by_kind.setdefault(row.kernel.kind, {})
            held = rows.get(row.kernel.key)
            if held is None or (held.status != OK and row.status == OK):
                rows[row.kernel.key] = row
    return {kind: _table([rows[key] for key in sorted(rows)], hardware) for kind, rows in sorted(by_kind.items())}


def train(
    release: "Release",
    target_name: str,
    *,
    estimator: str = "lightgbm",
    graphs: Mapping[str, Graph] | None = None,
) -> Bundle:
    """A bundle for one target of `release`.

    `graphs`, by graph id or network name, let the network constants be fitted on the networks whose role is training.
    Raises `UnknownNameError` for a target the release has not, `NothingSelectedError` where no row is usable.
    """
    environments = release.manifest.environments
    return train_on(
        release.measurements(target_name),
        release.target(target_name),
        estimator=estimator,
        hardware=hardware_of(environments[0].checked) if environments else Hardware(),
        origin=Origin(device=release.device, version=release.version, id=release.id),
        networks=release.network_measurements(target_name),
        graphs=graphs or {},
    )


def train_on(
    measurements: Sequence[Measurement],
    target: Target,
    *,
    estimator: str = "lightgbm",
    hardware: Hardware | None = None,
    origin: Origin | None = None,
    networks: Sequence[NetworkMeasurement] = (),
    graphs: Mapping[str, Graph] | None = None,
) -> Bundle:
    """A bundle from rows at hand; see `train`."""
    hardware = hardware or Hardware()
    learner = ESTIMATORS.load(estimator)
    found = tables(measurements, hardware)
    if not found:
        raise NothingSelectedError(
            f"no usable measurement of {target}", hint="measure some kernels on this target first: `opmark bench run`"
        )
    kinds: dict[str, KindPredictor] = {}
    without: dict[Kernel, tuple[float, float]] = {}
    with single_thread():
        for kind, table in found.items():
            kinds[kind], held_out = _predictor(kind, table, learner, estimator)
            without.update(_by_kernel(table.inputs.kernels, held_out))
    manifest = Manifest(
        target=target,
        estimator=estimator,
        hardware=hardware,
        origin=origin or Origin(device=target.device, version="0.0.0", id=""),
        kinds={kind: predictor.entry for kind, predictor in kinds.items()},
        anything=anything_of(found.values()),
        constants=NetworkConstants(),
        versions=versions(),
    )
    bundle = Bundle(manifest=manifest, kinds=kinds)
    if learner.plain_sum:
        return Bundle(manifest=replace(manifest, constants=PLAIN_SUM), kinds=kinds)
    return with_constants(bundle, networks, graphs or {}, measured=measured_kernels(measurements), without=without)


def with_constants(
    bundle: Bundle,
    networks: Sequence[NetworkMeasurement],
    graphs: Mapping[str, Graph],
    *,
    measured: Mapping[Kernel, tuple[float, float]] | None = None,
    without: Mapping[Kernel, tuple[float, float]] | None = None,
) -> Bundle:
    """`bundle` with network constants fitted on the training networks among `networks` that have a graph.

    Constants are fitted to sums of `measured` kernels (hot, rotated) where there are some, and intervals calibrated
    on sums of predictions made `without` the kernel's own shape group: the bundle has seen the kernels themselves.
    """
    held_out = sorted({one.family for one in networks if one.role != "training"})
    training = [one for one in networks if one.role == "training" and one.status in USABLE]
    model = CostModel(bundle, missing=BYTES_MOVED)
    constants = fit_constants(
        network_sums(model, training, graphs, measured=measured),
        backend=bundle.target.backend,
        held_out_families=held_out,
        predicted=network_sums(model, training, graphs, predicted=without),
    )
    return Bundle(manifest=replace(bundle.manifest, constants=constants), kinds=bundle.kinds)


def network_sums(
    model: CostModel,
    networks: Sequence[NetworkMeasurement],
    graphs: Mapping[str, Graph],
    *,
    measured: Mapping[Kernel, tuple[float, float]] | None = None,
    predicted: Mapping[Kernel, tuple[float, float]] | None = None,
) -> list[NetworkSum]:
    """Hot and rotated sums beside the measured latency, of every network whose graph is given.

    Kernels take what `measured` says, which leaves no doubt about them, or what `predicted` says, else the model's.
    """
    sums = []
    for one in networks:
        graph = graphs.get(one.graph_id) or graphs.get(one.network)
        if graph is None or not one.latency_ns:
            continue
        parts = replaced(model.parts(graph), {**(predicted or {}), **(measured or {})})
        sure = np.array([kernel in (measured or {}) for kernel in parts.kernels], dtype=bool)
        wanted = footprint_bytes(graph)
        weights = weight_shares(graph, parts)
        cold_ns = (parts.rotated_ns - parts.hot_ns) * parts.counts
        sums.append(
            NetworkSum(
                network=one.network,
                family=one.family,
                role=one.role,
                hot_ns=float((parts.hot_ns * parts.counts).sum()),
                weights_ns=float((weights * cold_ns).sum()),
                activations_ns=float(((1 - weights) * cold_ns).sum()),
                calls=len(graph.nodes),
                matrix_calls=int(parts.counts[parts.matrix].sum()),
                footprint=wanted / model.bundle.manifest.hardware.last_level_cache_bytes,
                footprint_bytes=float(wanted),
                latency_ns=one.latency_ns,
                network_class=network_class(graph),
                faults=one.faults_per_call,
                deviation=sum_deviation(parts, model.bundle.manifest, sure=sure),
            )
        )
    return sums


def measured_kernels(measurements: Sequence[Measurement]) -> dict[Kernel, tuple[float, float]]:
    """(hot, rotated) of every kernel with a usable row; rotated is NaN where it was not measured."""
    unknown = float("nan")
    return {
        row.kernel: (row.latency_hot_ns, row.latency_rotated_ns or unknown)
        for row in sorted(measurements, key=lambda row: row.status == OK)
        if row.status in USABLE and row.latency_hot_ns
    }


def _table(rows: Sequence[Measurement], hardware: Hardware) -> Table:
    unknown = float("nan")
    return Table(
        inputs=features([row.kernel for row in rows], KINDS.load(rows[0].kernel.kind), hardware),
        labels=Latencies(
            hot_ns=np.array([row.latency_hot_ns for row in rows], dtype=np.float64),
            rotated_ns=np.array([row.latency_rotated_ns or unknown for row in rows], dtype=np.float64),
        ),
        variation=np.array(
            [unknown if row.between_process_variation is None else row.between_process_variation for row in rows]
        ),
    )


def _by_kernel(kernels: Sequence[Kernel], labels: Latencies) -> dict[Kernel, tuple[float, float]]:
    return dict(zip(kernels, zip(labels.hot_ns.tolist(), labels.rotated_ns.tolist(), strict=True), strict=True))


def _predictor(kind: str, table: Table, learner: Estimator, estimator: str) -> tuple[KindPredictor, Latencies]:
    fitted = learner.fit(table.inputs, table.labels)
    labels = table.labels
    if learner.plain_sum:
        # a sum of hot latencies has no use for rotated ones of held-out groups, and they take half of the time
        labels = replace(labels, rotated_ns=np.full(len(table.inputs), np.nan))
    errors, held_out = calibrate(learner, fitted, table.inputs, labels)
    entry = KindEntry(
        rows=len(table.inputs),
        features=table.inputs.names,
        range=training_range(table.inputs),
        errors=errors,
        metrics=all_metrics(table.labels.hot_ns, held_out.hot_ns),
        roofline=fit_roofline(table.inputs.flops, table.inputs.moved_bytes, table.labels.hot_ns),
    )
    return KindPredictor(kind=kind, estimator=estimator, entry=entry, texts=fitted.files()), held_out


def anything_of(found: Iterable[Table]) -> Roofline:
    """Time per byte and per call of whatever is not matrix work: what an unknown kernel costs at least."""
    tables = list(found)
    light = [table for table in tables if not KINDS.load(table.inputs.kind).matrix] or tables
    moved = np.concatenate([table.inputs.moved_bytes for table in light])
    hot = np.concatenate([table.labels.hot_ns for table in light])
    return fit_roofline(np.zeros_like(moved), moved, hot, ("bytes", "constant"))
