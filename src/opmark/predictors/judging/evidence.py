"""The measurements that estimators are judged on, and the results row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.hardware.target import Target
from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.features import Hardware
from opmark.predictors.judging.splits import Context
from opmark.predictors.model.metrics import all_metrics
from opmark.predictors.model.training import release_hardware

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """One target's rows, its networks, and their graphs by id or name.

    `network_retests` pairs measurements of networks with their repeats.
    """

    target: Target
    measurements: Sequence[Measurement]
    hardware: Hardware = field(default_factory=Hardware)
    networks: Sequence[NetworkMeasurement] = ()
    network_retests: Sequence[tuple[NetworkMeasurement, NetworkMeasurement]] = ()
    graphs: Mapping[str, Graph] = field(default_factory=dict)

    @property
    def unseen(self) -> list[NetworkMeasurement]:
        """The measured networks with a graph from which nothing was sampled and on which nothing was fitted."""
        return [
            one
            for one in self.networks
            if one.role != "training" and one.status in USABLE and one.latency_ns and self.graph(one) is not None
        ]

    def graph(self, network: NetworkMeasurement) -> Graph | None:
        """Look up the graph of a network."""
        return self.graphs.get(network.graph_id) or self.graphs.get(network.network)

    @property
    def context(self) -> Context:
        """The kernels of each unseen network, in all its sizes."""
        kernels: dict[str, frozenset[str]] = {}
        for one in self.unseen:
            graph = self.graph(one)
            if graph is not None:
                own = frozenset(node.kernel.key for node in graph.costly)
                kernels[one.network] = kernels.get(one.network, frozenset()) | own
        return Context(network_kernels=kernels)


def evidence_of(release: "Release", target_name: str, graphs: Mapping[str, Graph]) -> Evidence:
    """Collect everything in `release` about one target. Raises `UnknownNameError` for a target that it lacks."""
    return Evidence(
        target=release.target(target_name),
        measurements=release.measurements(target_name),
        hardware=release_hardware(release),
        networks=release.network_measurements(target_name),
        network_retests=release.network_retests(target_name),
        graphs=graphs,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Measured and predicted latencies of the rows that judged, of all kinds, with intervals if the estimator has them.

    For networks, `kinds` holds their names, `classes` their element types or `training`, and `kernel_sum_ns` the sums
    of their measured kernels, NaN where too few were measured.
    """

    kinds: tuple[str, ...]
    measured_ns: Floats
    predicted_ns: Floats
    variation: Floats
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
