"""The time of measured networks by kind, which shows the kinds that are missing."""

from collections import defaultdict
from dataclasses import dataclass

from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.measurement import USABLE
from opmark.predictors.judging.evidence import Evidence
from opmark.predictors.model.bundle import Bundle
from opmark.predictors.model.cost_model import BYTES_MOVED, CostModel

# Kernels without a kind of their own may take this share of the zoo's measured time.
BYTES_MOVED_AT_MOST = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeByKind:
    """Shares of the measured time of a target's networks, largest first.

    `between` is time between calls, views and page faults. `worst` is the network with the largest share of
    `bytes-moved`, and that share.
    """

    target: str
    networks: int
    measured_ns: float
    by_kind: tuple[tuple[str, float], ...]
    between: float
    bytes_moved: float
    worst: tuple[str, float]

    @property
    def met(self) -> bool:
        """True if the share of `bytes-moved` is within its limit."""
        return self.bytes_moved <= BYTES_MOVED_AT_MOST


def time_by_kind(evidence: Evidence, bundle: Bundle) -> TimeByKind:
    """Divide the measured time of every network among kinds by predicted shares.

    Raises `NothingSelectedError` if no network with a known graph was measured.
    """
    model = CostModel(bundle, missing=BYTES_MOVED)
    spent: dict[str, float] = defaultdict(float)
    between, measured_ns, networks, worst = 0.0, 0.0, 0, ("", -1.0)
    for network in evidence.networks:
        graph = evidence.graph(network)
        if network.status not in USABLE or not network.latency_ns or graph is None:
            continue
        found = model.network(graph)
        shares: dict[str, float] = defaultdict(float)
        for row in found.rows:
            shares[row.kernel.kind] += row.total_ns / found.total_ns
        for kind, share in shares.items():
            spent[kind] += share * network.latency_ns
        between += max(0.0, 1 - sum(shares.values())) * network.latency_ns
        measured_ns += network.latency_ns
        networks += 1
        worst = max(worst, (network.network, shares.get(BYTES_MOVED, 0.0)), key=lambda item: item[1])
    if not networks:
        raise NothingSelectedError(
            f"no network was measured on {evidence.target.name}", hint="`opmark bench models` measures some"
        )
    return TimeByKind(
        target=evidence.target.name,
        networks=networks,
        measured_ns=measured_ns,
        by_kind=tuple((kind, ns / measured_ns) for kind, ns in sorted(spent.items(), key=lambda item: -item[1])),
        between=between / measured_ns,
        bytes_moved=spent.get(BYTES_MOVED, 0.0) / measured_ns,
        worst=worst,
    )
