"""Networks that no sample came from: predicted beside measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.graph import Graph
from opmark.core.measurement import USABLE
from opmark.datasets.release.release import Release
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkError:
    """One unseen network on one target; between `low_ns` and `high_ns` with the predictor's stated probability."""

    name: str
    target: str
    predicted_ns: float
    measured_ns: float
    low_ns: float
    high_ns: float
    bytes_moved_share: float

    @property
    def error(self) -> float:
        """Signed, as a fraction of the measured latency."""
        return self.predicted_ns / self.measured_ns - 1

    def document(self) -> dict[str, Any]:
        """As JSON."""
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
    """Every held-out network of `release` that was measured, on every target with a predictor.

    A kind without a predictor goes by its bytes, and its share of the time is said.
    """
    found = []
    for target, bundle in bundles.items():
        model = CostModel(bundle, missing=BYTES_MOVED)
        for row in release.network_measurements(target):
            if row.role == "training" or row.status not in USABLE or not row.latency_ns:
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
