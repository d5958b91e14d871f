"""The measurements that estimators are judged on, and the results row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import HELD_OUT, SEALED, USABLE, Measurement, NetworkMeasurement
from opmark.predictors.estimators import ESTIMATORS
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.judging.splits import Context
from opmark.predictors.learners.estimator import Estimator
from opmark.predictors.model.adapted_learner import TRANSFERRED
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import fusion_of, release_hardware
from opmark.predictors.transfer.corrected import Corrected, with_donor_ranges

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """One target's rows, its networks without the sealed ones, and their graphs by id or name.

    `release` is the id of the release that they come from, empty without one. `network_retests` pairs measurements of
    networks with their repeats; `fusion` as in `BundleManifest`. The estimator `transferred` corrects the `donor`.
    """

    target: Target
    measurements: Sequence[Measurement]
    hardware: Hardware = field(default_factory=Hardware)
    networks: Sequence[NetworkMeasurement] = ()
    network_retests: Sequence[tuple[NetworkMeasurement, NetworkMeasurement]] = ()
    graphs: Mapping[str, Graph] = field(default_factory=dict)
    release: str = ""
    fusion: Mapping[str, bool] = field(default_factory=dict)
    donor: Bundle | None = None

    def learner(self, estimator: str) -> Estimator:
        """Look up an estimator. Raises `UnknownNameError`, for `transferred` too where there is no donor."""
        if estimator == TRANSFERRED and self.donor is not None:
            return Corrected(donor=self.donor)
        return ESTIMATORS.load(estimator)

    def as_stored(self, bundle: Bundle, estimator: str) -> Bundle:
        """Give a trained bundle what it would be stored with: corrected kinds have the donor's ranges."""
        if estimator == TRANSFERRED and self.donor is not None:
            return with_donor_ranges(bundle, self.donor)
        return bundle

    @property
    def unseen(self) -> list[NetworkMeasurement]:
        """The measured networks with a graph from which nothing was sampled and on which nothing was fitted."""
        return [
            one
            for one in self.networks
            if one.role == HELD_OUT and one.status in USABLE and one.latency_ns and self.graph(one) is not None
        ]

    @property
    def without_graph(self) -> tuple[str, ...]:
        """The names of measured networks whose graph cannot be had here; neither judged nor fitted on."""
        usable = [one for one in self.networks if one.status in USABLE and one.latency_ns]
        return tuple(sorted({one.network for one in usable if self.graph(one) is None}))

    def graph(self, network: NetworkMeasurement) -> Graph | None:
        """Look up the graph of a network."""
        return self.graphs.get(network.graph_id) or self.graphs.get(network.network)

    @cached_property
    def context(self) -> Context:
        """The kernels of each unseen network, in all its sizes."""
        kernels: dict[str, frozenset[str]] = {}
        for one in self.unseen:
            graph = self.graph(one)
            if graph is not None:
                own = frozenset(node.kernel.key for node in graph.costly)
                kernels[one.network] = kernels.get(one.network, frozenset()) | own
        return Context(network_kernels=kernels)


def development(release: "Release", target_name: str) -> tuple[NetworkMeasurement, ...]:
    """The networks of a target that predictors are made and compared on: all but the sealed ones."""
    return tuple(one for one in release.network_measurements(target_name) if one.role != SEALED)


def evidence_of(release: "Release", target_name: str, graphs: Mapping[str, Graph]) -> Evidence:
    """Collect everything in `release` about one target. Raises `UnknownNameError` for a target that it lacks."""
    return Evidence(
        target=release.target(target_name),
        measurements=release.measurements(target_name),
        hardware=release_hardware(release),
        networks=development(release, target_name),
        network_retests=[pair for pair in release.network_retests(target_name) if pair[0].role != SEALED],
        graphs=graphs,
        release=release.id,
        fusion=fusion_of(release, target_name),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Measured and predicted latencies of the rows that judged, of all kinds, with intervals if the estimator has them.

    `variation` is that between processes, `deviation` the standard error of the label, both NaN where unknown;
    `families` are the shape groups of kernels and the families of networks.
    For networks, `kinds` holds their names, `classes` their element types or `training`, and `kernel_sum_ns` the sums
    of their measured kernels, NaN where too few were measured.
    """

    kinds: tuple[str, ...]
    measured_ns: Floats
    predicted_ns: Floats
    variation: Floats
    deviation: Floats | None = None
    families: tuple[str, ...] = ()
    low_ns: Floats | None = None
    high_ns: Floats | None = None
    kernel_sum_ns: Floats | None = None
    classes: tuple[str, ...] = ()


def by_kind(judged: Judged) -> dict[str, dict[str, float]]:
    """Compute every metric on the rows of each kind."""
    names = np.array(judged.kinds)
    return {
        kind: all_metrics(judged.measured_ns[names == kind], judged.predicted_ns[names == kind])
        for kind in sorted(set(judged.kinds))
    }


def joined(parts: Sequence[Judged]) -> Judged | None:
    """Put the rows of several parts one after another; a column that a part lacks is lacking. None without parts."""
    if not parts:
        return None

    def column(name: str) -> Floats | None:
        found = [getattr(part, name) for part in parts]
        return None if any(one is None for one in found) else np.concatenate(found)

    return Judged(
        kinds=tuple(kind for part in parts for kind in part.kinds),
        families=tuple(family for part in parts for family in part.families),
        classes=tuple(name for part in parts for name in part.classes),
        measured_ns=np.concatenate([part.measured_ns for part in parts]),
        predicted_ns=np.concatenate([part.predicted_ns for part in parts]),
        variation=np.concatenate([part.variation for part in parts]),
        deviation=column("deviation"),
        low_ns=column("low_ns"),
        high_ns=column("high_ns"),
        kernel_sum_ns=column("kernel_sum_ns"),
    )
