"""Training: one learner per kind from a release's rows, and network constants from its training networks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.errors import NothingSelectedError
from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.kinds import KINDS
from opmark.models.standard_graph import fuses_silently
from opmark.predictors.composition.constant_fit import fit_constants, fit_queue
from opmark.predictors.composition.constants import PLAIN_SUM, NetworkConstants, NetworkSum
from opmark.predictors.composition.host_time import MeasuredHost, usual_enqueue_ns
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import single_thread
from opmark.predictors.inputs.features import Hardware, hardware_of
from opmark.predictors.inputs.fused_graph import verdicts_of
from opmark.predictors.inputs.graphs import (
    activation_traffic_bytes,
    counted_python_calls,
    footprint_bytes,
    network_class,
)
from opmark.predictors.inputs.tables import Latencies, Table, by_kernel, measured_kernels, tables
from opmark.predictors.learners.estimator import Estimator
from opmark.predictors.learners.roofline import Roofline, fit_roofline
from opmark.predictors.model.bundle import Bundle, KindPredictor, versions
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel
from opmark.predictors.model.intervals import calibrate, training_range
from opmark.predictors.model.manifest import BundleManifest, KindEntry, TrainingRelease
from opmark.predictors.model.measured_kernels import measured_text
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.network import host_calls, replaced, sum_deviation, weight_shares

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


Beginning = Callable[[str, float, float], None]
"""Called when a kind is begun, or the networks at the end, with the shares of the rows, 0 to 1, that came before it and
that are its own."""
_NETWORKS = "networks"


def silent(kind: str, done: float, own: float) -> None:
    """Tell nobody that a kind is begun."""


def train(
    release: "Release",
    target_name: str,
    *,
    estimator: str = "lightgbm",
    learner: Estimator | None = None,
    graphs: Mapping[str, Graph] | None = None,
    most_rows: int | None = None,
    begun: Beginning = silent,
) -> Bundle:
    """Train a bundle for one target of `release`, each kind on `most_rows` of its rows at most, the first by key.

    Network constants are fitted on training networks whose graph is in `graphs`, by graph id or by name. A `learner` is
    used in place of the estimator of that name. Raises `UnknownNameError` for a target that the release lacks,
    `NothingSelectedError` without usable rows.
    """
    from opmark.datasets.format.manifest import IMPORTED

    measurements = release.measurements(target_name)
    return train_on(
        measurements if most_rows is None else _first_rows(measurements, most_rows),
        release.target(target_name),
        estimator=estimator,
        learner=learner,
        hardware=release_hardware(release),
        origin=origin_of(release),
        networks=release.network_measurements(target_name),
        graphs=graphs or {},
        derives=release.manifest.provenance.kind == IMPORTED,
        fusion=fusion_of(release, target_name),
        begun=begun,
    )


def _first_rows(measurements: Sequence[Measurement], most: int) -> list[Measurement]:
    """Keep the rows whose keys, which are hashes, come first in their kind: a sample that never changes."""
    by_kind: dict[str, list[Measurement]] = {}
    for row in sorted(measurements, key=lambda row: row.kernel.key):
        by_kind.setdefault(row.kernel.kind, []).append(row)
    return [row for rows in by_kind.values() for row in rows[:most]]


def release_hardware(release: "Release") -> Hardware:
    """Read the hardware from the first environment of a release."""
    environments = release.manifest.environments
    return hardware_of(environments[0].checked) if environments else Hardware()


def origin_of(release: "Release") -> TrainingRelease:
    """Name a release in the way that manifests do."""
    return TrainingRelease(device=release.device, version=release.version, id=release.id)


def fusion_of(release: "Release", target_name: str) -> dict[str, bool]:
    """The verdict on every pair of operators that was tested; empty for a runtime that tells its kernels itself."""
    return verdicts_of(release.fusions(target_name)) if fuses_silently(target_name) else {}


def train_on(
    measurements: Sequence[Measurement],
    target: Target,
    *,
    estimator: str = "lightgbm",
    learner: Estimator | None = None,
    hardware: Hardware | None = None,
    origin: TrainingRelease | None = None,
    networks: Sequence[NetworkMeasurement] = (),
    graphs: Mapping[str, Graph] | None = None,
    derives: bool = False,
    fusion: Mapping[str, bool] = MappingProxyType({}),
    begun: Beginning = silent,
) -> Bundle:
    """Train a bundle from given rows; see `train`. `derives` and `fusion` as in `BundleManifest`."""
    hardware = hardware or Hardware()
    learner = learner or ESTIMATORS.load(estimator)
    found = tables(measurements, hardware)
    if not found:
        raise NothingSelectedError(
            f"no usable measurement of {target}", hint="measure some kernels on this target first: `opmark bench run`"
        )
    kinds: dict[str, KindPredictor] = {}
    without: dict[Kernel, tuple[float, float]] = {}
    rows, done = sum(len(table.inputs) for table in found.values()), 0
    with single_thread():
        for kind, table in found.items():
            begun(kind, done / rows, len(table.inputs) / rows)
            done += len(table.inputs)
            kinds[kind], held_out = _predictor(kind, table, learner, estimator)
            without.update(by_kernel(table.inputs.kernels, held_out))
    manifest = BundleManifest(
        target=target,
        estimator=estimator,
        hardware=hardware,
        origin=origin or TrainingRelease(device=target.device, version="0.0.0", id=""),
        kinds={kind: predictor.entry for kind, predictor in kinds.items()},
        anything=anything_of(found.values()),
        constants=NetworkConstants(),
        versions=versions(),
        derives=derives,
        fusion=dict(fusion),
    )
    bundle = Bundle(manifest=manifest, kinds=kinds)
    if learner.plain_sum:
        return Bundle(manifest=replace(manifest, constants=PLAIN_SUM), kinds=kinds)
    begun(_NETWORKS, 1.0, 0.0)
    return with_constants(
        bundle,
        networks,
        graphs or {},
        measured=measured_kernels(measurements),
        without=without,
        enqueue_ns=usual_enqueue_ns(measurements),
    )


def with_constants(
    bundle: Bundle,
    networks: Sequence[NetworkMeasurement],
    graphs: Mapping[str, Graph],
    *,
    measured: Mapping[Kernel, tuple[float, float]] | None = None,
    without: Mapping[Kernel, tuple[float, float]] | None = None,
    enqueue_ns: Mapping[str, float] = MappingProxyType({}),
    prior: NetworkConstants | None = None,
) -> Bundle:
    """Fit the network constants of `bundle` on the training networks among `networks` that have a graph.

    Constants are fitted to sums of `measured` kernels (hot, rotated) where there are any. Intervals are calibrated on
    sums of predictions made `without` the kernel's own shape group, because the bundle learned from the kernels.
    Where the networks ran on a device of its own, its host has constants too, from the usual `enqueue_ns` of each kind.
    `prior` are the constants of another machine with this runtime, which few networks move little.
    """
    held_out = sorted({one.family for one in networks if one.role != "training"})
    training = [one for one in networks if one.role == "training" and one.status in USABLE]
    model = CostModel(bundle, missing=BYTES_MOVED)
    sums = network_sums(model, training, graphs, measured=measured)
    predicted = network_sums(model, training, graphs, predicted=without)
    midpoint = bundle.manifest.hardware.level2_share
    fit = partial(fit_queue, enqueue_ns=enqueue_ns) if any(one.host for one in sums) else fit_constants
    constants = fit(
        sums,
        backend=bundle.target.backend,
        matrix_gap_midpoint=midpoint,
        held_out_families=held_out,
        predicted=predicted,
        prior=prior,
    )
    return Bundle(manifest=replace(bundle.manifest, constants=constants), kinds=bundle.kinds)


def with_constants_of(
    bundle: Bundle, release: "Release", *, graphs: Mapping[str, Graph], begun: Beginning = silent
) -> Bundle:
    """Fit the network constants of a trained `bundle` anew on the training networks of `release`, and keep its kinds.

    Intervals stay at least as wide as training calibrated them: it knew predictions made without a network's kernels.
    Raises `UnknownNameError` where the release lacks the bundle's target, `NothingSelectedError` without a training
    network.
    """
    name = bundle.target.name
    rows, networks = release.measurements(name), release.network_measurements(name)
    begun(_NETWORKS, 1.0, 0.0)
    known, enqueue_ns = measured_kernels(rows), usual_enqueue_ns(rows)
    found = with_constants(bundle, networks, graphs, measured=known, enqueue_ns=enqueue_ns)
    if not found.constants.networks:
        raise NothingSelectedError(
            f"{release.name} holds no training network of {name}", hint="measure some: `opmark bench run`"
        )
    widened = max(found.constants.interval_scale, bundle.constants.interval_scale)
    constants = replace(found.constants, interval_scale=widened)
    made = bundle.manifest.transfer
    transfer = None if made is None else replace(made, constants="", prior="")
    return Bundle(manifest=replace(bundle.manifest, constants=constants, transfer=transfer), kinds=bundle.kinds)


def network_sums(
    model: CostModel,
    networks: Sequence[NetworkMeasurement],
    graphs: Mapping[str, Graph],
    *,
    measured: Mapping[Kernel, tuple[float, float]] | None = None,
    predicted: Mapping[Kernel, tuple[float, float]] | None = None,
) -> list[NetworkSum]:
    """Compute the sums of every network whose graph is given.

    Kernels take their latencies from `measured`, without any doubt, else from `predicted`, else from the model.
    """
    sums = []
    for one in networks:
        graph = graphs.get(one.graph_id) or graphs.get(one.network)
        if graph is None or not one.latency_ns:
            continue
        graph = model.as_run(graph).graph
        parts = replaced(model.parts(graph), {**(predicted or {}), **(measured or {})})
        sure = np.array([kernel in (measured or {}) for kernel in parts.kernels], dtype=bool)
        wanted = footprint_bytes(graph)
        weights = weight_shares(graph, parts)
        host = None
        if one.host_ns and one.device_ns:
            host = MeasuredHost(
                family=one.family,
                calls=host_calls(graph, parts),
                host_ns=one.host_ns,
                device_ns=one.device_ns,
            )
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
                python_calls=counted_python_calls(graph),
                footprint=wanted / model.bundle.manifest.hardware.last_level_cache_bytes,
                traffic=activation_traffic_bytes(graph) / model.bundle.manifest.hardware.last_level_cache_bytes,
                footprint_bytes=float(wanted),
                latency_ns=one.latency_ns,
                network_class=network_class(graph),
                faults=one.faults_per_call,
                host=host,
                deviation=sum_deviation(parts, model.bundle.manifest, sure=sure),
            )
        )
    return sums


def _predictor(kind: str, table: Table, learner: Estimator, estimator: str) -> tuple[KindPredictor, Latencies]:
    fitted = learner.fit(table.inputs, table.labels)
    labels = table.labels
    if learner.plain_sum:
        # a plain sum of hot latencies needs no rotated ones of held-out groups, which take half of the time
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
    texts = fitted.files() | measured_text(table, KINDS.load(kind).categories)
    return KindPredictor(kind=kind, estimator=estimator, entry=entry, texts=texts), held_out


def anything_of(found: Iterable[Table]) -> Roofline:
    """Fit time per byte and per call of kinds without matrix work, which is the least that unknown kernels cost."""
    everything = list(found)
    light = [table for table in everything if not KINDS.load(table.inputs.kind).matrix] or everything
    moved = np.concatenate([table.inputs.moved_bytes for table in light])
    hot = np.concatenate([table.labels.hot_ns for table in light])
    return fit_roofline(np.zeros_like(moved), moved, hot, ("bytes", "constant"))
