"""Predicted and measured latencies of the networks that no sample came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.graph import Graph
from opmark.core.measurements.measurement import HELD_OUT, USABLE
from opmark.datasets.release.release import Release
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkError:
    """One unseen network on one target; `low_ns` and `high_ns` are the prediction interval."""

    name: str
    target: str
    predicted_ns: float
    measured_ns: float
    low_ns: float
    high_ns: float
    bytes_moved_share: float

    @property
    def error(self) -> float:
        """The signed error as a fraction of the measured latency."""
        return self.predicted_ns / self.measured_ns - 1

    def document(self) -> dict[str, Any]:
        """The network as documented JSON."""
        return {
            "name": self.name,
            "target": self.target,
            "predicted_ns": self.predicted_ns,
            "measured_ns": self.measured_ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "bytes_moved_share": self.bytes_moved_share,
            "error": self.error,
        }


def compare(
    release: Release, bundles: Mapping[str, Bundle], graphs: Mapping[str, Mapping[str, Graph]]
) -> tuple[NetworkError, ...]:
    """Compare every measured held-out network of `release` on every target that has a predictor.

    Kernels of a kind without a predictor are predicted from their bytes; `bytes_moved_share` is their share of time.
    """
    found = []
    for target, bundle in bundles.items():
        model = CostModel(bundle, missing=BYTES_MOVED)
        for row in release.network_measurements(target):
            if row.role != HELD_OUT or row.status not in USABLE or not row.latency_ns:
                continue
            prediction = model.network(graphs[target][row.network])
            found.append(
                NetworkError(
                    name=row.network,
                    target=target,
                    predicted_ns=prediction.total_ns,
                    measured_ns=row.latency_ns,
                    low_ns=prediction.low_ns,
                    high_ns=prediction.high_ns,
                    bytes_moved_share=prediction.bytes_moved_share,
                )
            )
    return tuple(found)
