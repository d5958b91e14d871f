"""What estimators are judged on, and what judging gave, row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opmark.core.graph import Graph
from opmark.core.measurement import USABLE, Measurement, NetworkMeasurement
from opmark.core.target import Target
from opmark.predictors.inputs.arrays import Floats
from opmark.predictors.inputs.hardware import Hardware, hardware_of
from opmark.predictors.judging.splits import Context
from opmark.predictors.model.metrics import all_metrics

if TYPE_CHECKING:
    from opmark.datasets.release.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """What there is to evaluate on: one target's rows, and networks with their graphs by id or name.

    `network_retests` are networks that were measured again, each with its repeat.
    """

    target: Target
    measurements: Sequence[Measurement]
    hardware: Hardware = field(default_factory=Hardware)
    networks: Sequence[NetworkMeasurement] = ()
    network_retests: Sequence[tuple[NetworkMeasurement, NetworkMeasurement]] = ()
    graphs: Mapping[str, Graph] = field(default_factory=dict)

    @property
    def unseen(self) -> list[NetworkMeasurement]:
        """Measured networks that nothing was sampled from or fitted on and whose graph is given."""
        return [
            one
            for one in self.networks
            if one.role != "training" and one.status in USABLE and one.latency_ns and self.graph(one) is not None
        ]

    def graph(self, network: NetworkMeasurement) -> Graph | None:
        """The graph of a network, if it was given."""
        return self.graphs.get(network.graph_id) or self.graphs.get(network.network)

    @property
    def context(self) -> Context:
        """The kernels of the unseen networks, those of one network in all its sizes together."""
        kernels: dict[str, frozenset[str]] = {}
        for one in self.unseen:
            graph = self.graph(one)
            if graph is not None:
                own = frozenset(node.kernel.key for node in graph.costly)
                kernels[one.network] = kernels.get(one.network, frozenset()) | own
        return Context(network_kernels=kernels)


def evidence_of(release: "Release", target_name: str, graphs: Mapping[str, Graph]) -> Evidence:
    """Everything that `release` knows of one target. Raises `UnknownNameError` for a target it has not."""
    environments = release.manifest.environments
    return Evidence(
        target=release.target(target_name),
        measurements=release.measurements(target_name),
        hardware=hardware_of(environments[0].checked) if environments else Hardware(),
        networks=release.network_measurements(target_name),
        network_retests=release.network_retests(target_name),
        graphs=graphs,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Judged:
    """Measured and predicted latencies of the rows that judged, all kinds together; intervals where there are any.

    For networks, `kinds` are their names and `kernel_sum_ns` is the sum of their measured kernels, NaN where too few
    of those were measured; `classes` are their element types, or that they are training steps.
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
    """Every metric of each kind's rows alone."""
    names = np.array(judged.kinds)
    return {
        kind: all_metrics(judged.measured_ns[names == kind], judged.predicted_ns[names == kind])
        for kind in sorted(set(judged.kinds))
    }
