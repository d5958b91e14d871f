"""The constants that turn kernel latencies into a network's: cache pressure, time between calls, page faults.

A network = k · Σ [hot + (w · s + v · (1 − s)) · (rotated − hot)] + calls · gap + matrix calls · c · matrix gap
+ Python calls · ns per Python call + faults · ns per fault, where s is the share of weights in a kernel's bytes.
k is the time of a kernel inside a network over its label: the machine may be in another state there, and a kernel runs
among others (decision 0064).
Weights were last read one whole network earlier; the share of them that has left the cache is w, a monotone function of
(weight bytes read + peak activation bytes + traffic share · bytes of activations that kernels read and write) over the
last-level cache: results that nobody wants any more still lie there (decision 0056). Activations were just written; the
share of their rotated cost that remains is v, a number. The gap is the time between two calls, views included. Matrix
calls wait longer, because other kernels evict their code (decision 0017): fully in a large network, hardly in one that
fits into the level-2 cache, which c tells (decision 0042). On eager torch the interpreter runs every Python function
that a forward pass enters (decision 0037). On a device of its own, views take nothing, and a network takes at least as
long as its host (`host_time`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from opmark.core.units import counted
from opmark.predictors.composition.host_time import HostConstants, MeasuredHost

MOST_ROTATED = 1.5
# Stated intervals contain the truth with this probability.
COVERAGE = 0.9
# The deviation of composition where no network was compared.
USUAL_COMPOSITION = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassConstants:
    """The constants of one class of networks, fitted on `networks` of them; see `NetworkConstants`."""

    ceiling: float
    midpoint: float
    steepness: float
    activation_share: float
    gap_ns: float
    composition_deviation: float
    networks: int
    matrix_gap_ns: float = 0.0
    python_call_ns: float = 0.0
    kernel_scale: float = 1.0


# The fields that a class has instead of those of all networks.
CLASS_FIELDS = tuple(one.name for one in fields(ClassConstants) if one.name != "networks")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """w(x) = ceiling / (1 + (midpoint / x)^steepness); the defaults hold where no training network was measured.

    `kernel_scale` is k, 1 in older bundles; `activation_share` is v, `traffic_share` the share of all traffic of
    activations that counts in the footprint x. `composition_deviation` is the error of the sum, in nats.
    `interval_scale` widens the log interval of a network, so that it covers nine in ten training networks whose
    family was left out of the fit. Values below 1, in older bundles, do not narrow it. `python_calls_per_node` is
    the median of the training networks, for graphs of eager torch whose Python calls nobody counted. Matrix calls
    wait half of their gap in a network whose footprint is `matrix_gap_midpoint`, and all of it everywhere in older
    bundles, which have 0. `classes` holds the constants of single element types and of training steps, drawn
    towards those of all networks; a class without constants of its own uses those of all. `host` holds the
    constants of a host that enqueues the calls of a device of its own, None where the processor itself computes.
    """

    ceiling: float = 0.9
    midpoint: float = 0.6
    steepness: float = 3.0
    activation_share: float = 0.1
    gap_ns: float = 0.0
    matrix_gap_ns: float = 0.0
    matrix_gap_midpoint: float = 0.0
    python_call_ns: float = 0.0
    kernel_scale: float = 1.0
    python_calls_per_node: float = 0.0
    traffic_share: float = 0.0
    ns_per_fault: float = 0.0
    faults_per_byte: float = 0.0
    composition_deviation: float = USUAL_COMPOSITION
    interval_scale: float = 1.0
    networks: tuple[str, ...] = ()
    classes: Mapping[str, ClassConstants] = field(default_factory=dict)
    host: HostConstants | None = None

    def of(self, network_class: str) -> "NetworkConstants":
        """Look up the constants of one class of networks."""
        own = self.classes.get(network_class)
        if own is None:
            return replace(self, classes={})
        return replace(self, **{name: getattr(own, name) for name in CLASS_FIELDS}, classes={})

    def python_calls(self, counted: float | None, nodes: int) -> float:
        """The Python calls `counted`, or as many as `nodes` of a graph have in the median."""
        return nodes * self.python_calls_per_node if counted is None else counted

    def rotated_share(self, footprint: float) -> float:
        """Compute w at `footprint`, the network's bytes over those of the last-level cache."""
        if footprint <= 0:
            return 0.0
        # beyond these limits w is 0 or the ceiling, and a larger exponent would overflow
        exponent = float(np.clip(self.steepness * np.log(self.midpoint / footprint), -60, 60))
        return self.ceiling / (1 + float(np.exp(exponent)))

    def evicted_code_share(self, footprint: float) -> float:
        """Compute c = footprint / (footprint + midpoint): the share of the matrix gap that a network waits.

        `footprint` is the network's bytes over those of the last-level cache.
        """
        if not self.matrix_gap_midpoint:
            return 1.0
        # in this form no rounding lets a larger footprint have a smaller share
        return 1 / (1 + self.matrix_gap_midpoint / footprint) if footprint > 0 else 0.0

    @property
    def summary(self) -> str:
        """The origin of the constants without the names of the networks."""
        if not self.networks:
            return self.note
        several = counted(len(self.networks), "network") if len(self.networks) > 1 else "one network"
        return f"network constants fitted on {several}"

    @property
    def note(self) -> str:
        """A sentence on the origin of the constants."""
        gaps_ns = (self.gap_ns, self.matrix_gap_ns, self.python_call_ns)
        if not any((self.ceiling, self.activation_share, *gaps_ns, self.ns_per_fault)) and not self.networks:
            return "a network is the plain sum of its kernels"
        if not self.networks:
            return "network constants are defaults: no training network was measured"
        return f"network constants fitted on {', '.join(self.networks)}"


# As in nn-Meter, a network is the plain sum of its kernels.
PLAIN_SUM = NetworkConstants(ceiling=0.0, activation_share=0.0, networks=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSum:
    """One network's sums over its kernels, and its measured latency.

    `weights_ns` and `activations_ns` are the sums of s · (rotated − hot) and (1 − s) · (rotated − hot); `calls` counts
    all nodes, views included, `footprint` and `traffic` are over the last-level cache, `matrix_calls` those of matrix
    work, `python_calls` the Python functions of a forward pass, None where nobody counted them. `host` is what the host
    did and what both sides took, where the device is one of its own. `deviation` is the uncertainty of the sum from the
    kernels' errors, in nats; constants must not explain it away.
    """

    network: str
    family: str
    role: str
    hot_ns: float
    weights_ns: float
    activations_ns: float
    calls: int
    footprint: float
    footprint_bytes: float
    latency_ns: float
    traffic: float = 0.0
    network_class: str = "float32"
    faults: float | None = None
    deviation: float = 0.0
    matrix_calls: int = 0
    python_calls: float | None = 0.0
    host: MeasuredHost | None = None

    def total_ns(self, constants: NetworkConstants) -> float:
        """Compute the network's latency from `constants`, or from those of its class."""
        own = constants.of(self.network_class)
        footprint = self.footprint + own.traffic_share * self.traffic
        kernels = self.hot_ns + own.rotated_share(footprint) * self.weights_ns
        kernels = own.kernel_scale * (kernels + own.activation_share * self.activations_ns)
        gaps = self.calls * own.gap_ns
        gaps += self.matrix_calls * own.evicted_code_share(footprint) * own.matrix_gap_ns
        gaps += own.python_calls(self.python_calls, self.calls) * own.python_call_ns
        return kernels + gaps + own.faults_per_byte * self.footprint_bytes * own.ns_per_fault
