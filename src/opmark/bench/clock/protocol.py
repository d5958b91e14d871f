"""Measuring protocols: every number of the measuring rules, as named presets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.measurements.estimate import LABEL_QUANTILE
from opmark.core.measurements.measurement import ERROR_OF_COARSE, ERROR_OF_OK
from opmark.core.registry import unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """The turns of one look for kernels faster than `below_ns`; a turn has `samples` samples, or one rotated sample."""

    below_ns: float
    hot: int
    rotated: int
    samples: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringProtocol:
    """The rules of one preset: how long a look is, and when a label is known well enough.

    A look measures a trial in one process, in turns with the sentinels. A trial is settled after looks in
    `processes` processes once the standard error of its labels is at most `enough`, a fraction (thrice that for
    rotated ones), or after `most_looks`. Long runs work in passes of `pass_s` seconds. Worker processes are
    replaced after `looks_per_process` looks, and one look in `repeat_every` of the first pass repeats an earlier
    one. Waiting for a calm machine takes `patience` of the time.
    """

    name: str
    processes: int
    enough: float
    tiers: tuple[Tier, ...] = (
        Tier(below_ns=1e6, hot=12, rotated=6),
        Tier(below_ns=1e7, hot=5, rotated=3),
        Tier(below_ns=math.inf, hot=2, rotated=2, samples=2),
    )
    network_turns: int = 3
    network_samples: int = 2
    most_looks: int = 48
    pass_s: float = 60.0
    looks_per_process: int = 160
    repeat_every: int = 8
    patience: float = 0.1
    fusion_rounds: int = 5
    device_samples: int = 20
    sample_ns: int = 350_000
    burst_ns: int = 200_000_000
    rest_s: float = 0.01
    wake_ns: int = 1_000_000
    slope_below_ns: int = 40_000
    most_copies: int = 32
    rotated_copies: int = 64
    rotated_cache_share: float = 1.4
    rotated_bytes: int = 256 << 20
    sweep_above_ns: int = 200_000
    gate_above_ns: int = 3_000_000
    gate_pressure: float = 10.0
    gate_limit_s: float = 5.0
    warm_up_agreement: float = 0.05
    warm_up_samples: int = 12
    warm_up_limit_s: float = 2.0
    warm_up_enough_ns: int = 20_000_000
    look_limit_s: float = 6.0
    answer_limit_s: float = 90.0
    model_limit_bytes: int = 1 << 30
    label_quantile: float = LABEL_QUANTILE

    def tier(self, latency_ns: float) -> Tier:
        """The tier of a kernel of about `latency_ns`."""
        return next(tier for tier in self.tiers if latency_ns < tier.below_ns)


FULL = MeasuringProtocol(name="full", processes=2, enough=ERROR_OF_OK)
# For a first answer in minutes: one look is enough if its label is usable.
QUICK = MeasuringProtocol(
    name="quick",
    processes=1,
    enough=ERROR_OF_COARSE,
    fusion_rounds=3,
    warm_up_samples=6,
    warm_up_limit_s=0.5,
    look_limit_s=2.0,
)
PROTOCOLS = {protocol.name: protocol for protocol in (FULL, QUICK)}


def protocol_named(name: str) -> MeasuringProtocol:
    """The preset called `name`. Raises `UnknownNameError`."""
    if name not in PROTOCOLS:
        raise unknown_name("quality", name, PROTOCOLS)
    return PROTOCOLS[name]


def protocol_from(content: Mapping[str, Any]) -> MeasuringProtocol:
    """The protocol in a request to a worker."""
    # Without pydantic, whose import would take a tenth of a second at every start of a worker.
    return MeasuringProtocol(**{**content, "tiers": tuple(Tier(**tier) for tier in content["tiers"])})
