"""The few constants that turn kernel latencies into a network's: cache pressure, gaps between calls and page faults.

A network = Σ [hot + (w · s + v · (1 − s)) · (rotated − hot)] + calls · gap + matrix calls · matrix gap
+ faults · ns per fault, where s is the share of weights in a kernel's bytes. Weights were last read a whole network
ago: how much of them is gone is w, one monotone function per target of (weight bytes read + peak activation bytes) /
last-level cache. Activations were written a moment ago: what their way costs nevertheless is v, a number. Views are
calls too. Matrix calls are those of kinds that do matrix work: what else runs drives out their code (decision 0017).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

MOST_ROTATED = 1.5
# Before any network was compared: the deviation of composition.
USUAL_COMPOSITION = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassConstants:
    """What one class of networks has for itself: see `NetworkConstants`. `networks` is how many it was fitted on."""

    ceiling: float
    midpoint: float
    steepness: float
    activation_share: float
    gap_ns: float
    composition_deviation: float
    networks: int
    matrix_gap_ns: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """w(x) = ceiling / (1 + (midpoint / x)^steepness); the defaults hold where no training network was measured.

    `activation_share` is v. `composition_deviation` is the error of the sum, in nats; `interval_scale` is what a
    network's interval is widened by, in the logarithm, to cover nine in ten of the training networks whose family
    nothing was fitted on. `classes` are the constants of networks of one element type, or of training steps, drawn
    towards those of all; a class without its own has those of all.
    """

    ceiling: float = 0.9
    midpoint: float = 0.6
    steepness: float = 3.0
    activation_share: float = 0.1
    gap_ns: float = 0.0
    matrix_gap_ns: float = 0.0
    ns_per_fault: float = 0.0
    faults_per_byte: float = 0.0
    composition_deviation: float = USUAL_COMPOSITION
    interval_scale: float = 1.0
    networks: tuple[str, ...] = ()
    classes: Mapping[str, ClassConstants] = field(default_factory=dict)

    def of(self, network_class: str) -> "NetworkConstants":
        """The constants of one class of networks."""
        own = self.classes.get(network_class)
        if own is None:
            return replace(self, classes={})
        return replace(
            self,
            ceiling=own.ceiling,
            midpoint=own.midpoint,
            steepness=own.steepness,
            activation_share=own.activation_share,
            gap_ns=own.gap_ns,
            matrix_gap_ns=own.matrix_gap_ns,
            composition_deviation=own.composition_deviation,
            classes={},
        )

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
        costs = (self.ceiling, self.activation_share, self.gap_ns, self.matrix_gap_ns, self.ns_per_fault)
        if not any(costs) and not self.networks:
            return "a network is the plain sum of its kernels"
        if not self.networks:
            return "network constants are defaults: no training network was measured"
        return f"network constants fitted on {', '.join(self.networks)}"


# What nn-Meter does: a network is the sum of its kernels and nothing else.
PLAIN_SUM = NetworkConstants(ceiling=0.0, activation_share=0.0, networks=())


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSum:
    """One network's sums over its kernels and, for fitting, what was measured.

    `weights_ns` and `activations_ns` are the sums of s · (rotated − hot) and (1 − s) · (rotated − hot); `calls` counts
    every node, views too, `matrix_calls` those of matrix work. `deviation` is how uncertain the kernels' errors make
    the sum, in nats: constants must not explain those away.
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
    network_class: str = "float32"
    faults: float | None = None
    deviation: float = 0.0
    matrix_calls: int = 0

    def total_ns(self, constants: NetworkConstants) -> float:
        """The network's latency under `constants`, those of its class where there are some."""
        own = constants.of(self.network_class)
        kernels = self.hot_ns + own.rotated_share(self.footprint) * self.weights_ns
        activations = own.activation_share * self.activations_ns
        gaps = self.calls * own.gap_ns + self.matrix_calls * own.matrix_gap_ns
        return kernels + activations + gaps + own.faults_per_byte * self.footprint_bytes * own.ns_per_fault
