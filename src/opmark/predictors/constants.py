"""The few constants that turn kernel latencies into a network's: cache pressure, gap and page faults.

A network = Σ [hot + w · (rotated − hot)] + nodes · gap + faults · ns per fault. w is one monotone function per target
of (weight bytes + peak activation bytes) / last-level cache. Constants are fitted on training networks, never on
others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opmark.core.errors import ContentError
from opmark.predictors.arrays import Floats
from opmark.predictors.intervals import COVERAGE

MOST_ROTATED = 1.5
# A minor fault costs 0.1 µs on bare metal and near 1 µs in a guest; networks decide where they can.
_USUAL_FAULT_NS = 500.0
# Deviations of the weak priors, in nats of the midpoint and steepness, in w, and in ns.
_MIDPOINT_DEVIATION = 0.7
_STEEPNESS_DEVIATION = 0.5
_CEILING_DEVIATION = 0.4
_GAP_DEVIATION_NS = 1000.0
# An interpreter between kernels, allocating as it goes, takes microseconds; a runtime's own loop does not.
_GAP_DEVIATIONS_NS = {"torch-eager": 10_000.0}
_FAULT_DEVIATION_NS = 500.0
# How well networks are expected to be matched: what outweighs the priors.
_NETWORK_DEVIATION = 0.05
# Before any network was compared: the deviation of composition, and how many networks that opinion is worth.
_USUAL_COMPOSITION = 0.06
_OPINION_NETWORKS = 3
# Nine in ten draws of a normal lie within this many deviations.
NORMAL_90 = 1.6449
# Ratios of error to deviation that a normal gives at even steps, as the opinion before networks say otherwise.
_OPINION_RATIOS = [0.13, 0.39, 0.67, 1.04, 1.64]
_LEAST_SCALE, _MOST_SCALE = 0.5, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """w(x) = ceiling / (1 + (midpoint / x)^steepness); the defaults hold where no training network was measured.

    How far w rises is the machine's: where prefetching hides most of a weight's way from memory, networks of many
    times the cache stay near w = 0.35, elsewhere they come to 1.4. `composition_deviation` is the error of the sum, in
    nats; `interval_scale` is what a network's interval is widened by, in the logarithm, to cover nine in ten of
    the training networks whose family nothing was fitted on.
    """

    ceiling: float = 0.6
    midpoint: float = 1.0
    steepness: float = 2.0
    gap_ns: float = 0.0
    ns_per_fault: float = 0.0
    faults_per_byte: float = 0.0
    composition_deviation: float = _USUAL_COMPOSITION
    interval_scale: float = 1.0
    networks: tuple[str, ...] = ()

    def rotated_share(self, footprint: float) -> float:
        """w at `footprint`, the network's bytes over the last-level cache's."""
        if footprint <= 0:
            return 0.0
        # a power of 30 on either side is 0 or the ceiling already, and does not overflow
        exponent = float(np.clip(self.steepness * np.log(self.midpoint / footprint), -60, 60))
        return self.ceiling / (1 + float(np.exp(exponent)))

    @property
    def note(self) -> str:
        """Where the constants come from, in a sentence."""
        if self.ceiling == self.gap_ns == self.ns_per_fault == 0 and not self.networks:
            return "a network is the plain sum of its kernels"
        if not self.networks:
            return "network constants are defaults: no training network was measured"
        return f"network constants fitted on {', '.join(self.networks)}"


# What nn-Meter does: a network is the sum of its kernels and nothing else.
PLAIN_SUM = NetworkConstants(ceiling=0.0, networks=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSum:
    """One network's predicted sums and, for fitting, what was measured.

    `deviation` is how uncertain the kernels' errors make the sum, in nats: constants must not explain those away.
    """

    network: str
    family: str
    role: str
    hot_ns: float
    rotated_ns: float
    nodes: int
    footprint: float
    footprint_bytes: float
    latency_ns: float
    faults: float | None = None
    deviation: float = 0.0

    def total_ns(self, constants: NetworkConstants) -> float:
        """The network's latency under `constants`."""
        share = constants.rotated_share(self.footprint)
        faults = constants.faults_per_byte * self.footprint_bytes
        kernels = self.hot_ns + share * (self.rotated_ns - self.hot_ns)
        return kernels + self.nodes * constants.gap_ns + faults * constants.ns_per_fault


def fit_constants(
    sums: Sequence[NetworkSum],
    *,
    backend: str = "",
    held_out_families: Sequence[str] = (),
    predicted: Sequence[NetworkSum] = (),
) -> NetworkConstants:
    """Constants that match measured training networks in relative error, under weak priors.

    `backend` tells how long gaps usually are. `predicted` are the same networks summed from predictions that were
    made without their kernels: what intervals are calibrated on, `sums` themselves where there are none.

    Raises `ContentError` for a network that is not in the role of training or whose family is reported as unseen.
    """
    for one in sums:
        if one.role != "training":
            raise ContentError(f"network {one.network!r} is {one.role}: constants are fitted on training networks only")
        if one.family in held_out_families:
            raise ContentError(
                f"family {one.family!r} is both training and held-out", hint="give all its networks one role"
            )
    if not sums:
        return NetworkConstants()
    gap_deviation_ns = _GAP_DEVIATIONS_NS.get(backend, _GAP_DEVIATION_NS)
    whole = _solve(sums, gap_deviation_ns)
    without = _without_family(sums, gap_deviation_ns)
    squares = []
    for one in sums:
        error = np.log(one.latency_ns / one.total_ns(without[one.family]))
        # what the kernels' own errors explain is in every interval already
        squares.append(max(0.0, float(error) ** 2 - one.deviation**2))
    total = sum(squares) + _OPINION_NETWORKS * _USUAL_COMPOSITION**2
    composition = float(np.sqrt(total / (len(sums) + _OPINION_NETWORKS)))
    return NetworkConstants(
        ceiling=whole.ceiling,
        midpoint=whole.midpoint,
        steepness=whole.steepness,
        gap_ns=whole.gap_ns,
        ns_per_fault=whole.ns_per_fault,
        faults_per_byte=whole.faults_per_byte,
        composition_deviation=composition,
        interval_scale=_interval_scale(predicted or sums, without, composition),
        networks=tuple(sorted({one.network for one in sums})),
    )


def _without_family(sums: Sequence[NetworkSum], gap_deviation_ns: float) -> dict[str, NetworkConstants]:
    """Constants for each family, fitted on the others."""
    found = {}
    for family in sorted({one.family for one in sums}):
        others = [one for one in sums if one.family != family]
        found[family] = _solve(others, gap_deviation_ns) if others else NetworkConstants()
    return found


def _interval_scale(sums: Sequence[NetworkSum], without: Mapping[str, NetworkConstants], composition: float) -> float:
    """What the errors' stated deviations are multiplied with to cover nine in ten networks of unseen families.

    Split-conformal on the ratio of error to stated deviation. Where networks are few, some that follow the stated
    deviations exactly are added to them, so that the luck of three does not make an interval vanish.
    """
    ratios = []
    for one in sums:
        if one.family in without:
            error = abs(float(np.log(one.latency_ns / one.total_ns(without[one.family]))))
            ratios.append(error / float(np.hypot(one.deviation, composition)))
    ratios += _OPINION_RATIOS
    rank = min(len(ratios), int(np.ceil((len(ratios) + 1) * COVERAGE)))
    return float(np.clip(sorted(ratios)[rank - 1] / NORMAL_90, _LEAST_SCALE, _MOST_SCALE))


def _solve(sums: Sequence[NetworkSum], gap_deviation_ns: float) -> NetworkConstants:
    from scipy.optimize import least_squares

    usual = NetworkConstants()
    rates = [one.faults / one.footprint_bytes for one in sums if one.faults and one.footprint_bytes > 0]
    faults_per_byte = float(np.median(rates)) if len(rates) * 2 > len(sums) else 0.0
    fault_ns = _USUAL_FAULT_NS if faults_per_byte else 0.0

    def constants(point: Floats) -> NetworkConstants:
        return NetworkConstants(
            ceiling=float(point[4]),
            midpoint=float(np.exp(point[0])),
            steepness=float(np.exp(point[1])),
            gap_ns=float(point[2]) * gap_deviation_ns,
            ns_per_fault=float(point[3]) * _FAULT_DEVIATION_NS if faults_per_byte else 0.0,
            faults_per_byte=faults_per_byte,
        )

    def residuals(point: Floats) -> Floats:
        now = constants(point)
        errors = [
            np.log(one.latency_ns / one.total_ns(now)) / np.hypot(_NETWORK_DEVIATION, one.deviation) for one in sums
        ]
        priors = [
            (point[0] - np.log(usual.midpoint)) / _MIDPOINT_DEVIATION,
            (point[1] - np.log(usual.steepness)) / _STEEPNESS_DEVIATION,
            point[2],
            point[3] - fault_ns / _FAULT_DEVIATION_NS,
            (point[4] - usual.ceiling) / _CEILING_DEVIATION,
        ]
        return np.array([*errors, *priors])

    start = [np.log(usual.midpoint), np.log(usual.steepness), 0.1, fault_ns / _FAULT_DEVIATION_NS + 1e-3, usual.ceiling]
    lower = [np.log(0.05), np.log(0.3), 0.0, 0.0, 0.0]
    upper = [np.log(50.0), np.log(8.0), 20.0, 20.0, MOST_ROTATED]
    # a network that no constants explain (a graph that hid work, say) should not bend the others
    found = least_squares(residuals, start, bounds=(lower, upper), loss="soft_l1", f_scale=3.0)
    return constants(np.asarray(found.x, dtype=np.float64))
