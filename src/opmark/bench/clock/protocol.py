"""Measuring protocols: every number of the measuring rules, as named presets."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.measurements.estimate import LABEL_QUANTILE
from opmark.core.registry import unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """The samples per process for kernels faster than `below_ns`."""

    below_ns: float
    hot: int
    rotated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringProtocol:
    """The rules of one preset. Fractions are relative to the label; samples are per process.

    The samples of a trial are spread over `blocks` shuffled rounds. A round whose sentinels drifted is measured again
    up to `retries` times. A trial becomes `low_quality` after `extension` times the samples. A label is the
    `label_quantile` of its samples.
    """

    name: str
    tiers: tuple[Tier, ...]
    processes: int
    most_processes: int
    blocks: int
    retries: int
    extension: int
    network_samples: int
    agreement: float = 0.02
    half_width: float = 0.01
    sentinel_drift: float = 0.03
    sentinel_samples: int = 10
    sample_ns: int = 350_000
    burst_ns: int = 200_000_000
    rest_s: float = 0.01
    wake_ns: int = 1_000_000
    slope_below_ns: int = 40_000
    most_copies: int = 32
    rotated_copies: int = 64
    rotated_cache_share: float = 1.4
    rotated_bytes: int = 256 << 20
    gate_above_ns: int = 3_000_000
    gate_pressure: float = 10.0
    gate_limit_s: float = 5.0
    warm_up_agreement: float = 0.05
    warm_up_samples: int = 12
    warm_up_limit_s: float = 2.0
    trial_limit_s: float = 20.0
    answer_limit_s: float = 90.0
    chunk_trials: int = 48
    chunk_bytes: int = 256 << 20
    restart_chunks: int = 8
    model_limit_bytes: int = 1 << 30
    label_quantile: float = LABEL_QUANTILE

    def tier(self, latency_ns: float) -> Tier:
        """The tier of a kernel of about `latency_ns`."""
        return next(tier for tier in self.tiers if latency_ns < tier.below_ns)


FULL = MeasuringProtocol(
    name="full",
    tiers=(
        Tier(below_ns=1e6, hot=60, rotated=15),
        Tier(below_ns=1e7, hot=20, rotated=8),
        Tier(below_ns=math.inf, hot=9, rotated=3),
    ),
    processes=2,
    # The memory that a process gets decides up to a third of some kernels' time. If two processes disagree, further
    # processes show which is usual, and more samples from the same two do not.
    most_processes=5,
    blocks=5,
    retries=1,
    extension=4,
    network_samples=12,
)
# For a first answer in minutes: one process, three blocks, no second attempt; only strong drift is marked.
QUICK = MeasuringProtocol(
    name="quick",
    tiers=(
        Tier(below_ns=1e6, hot=24, rotated=6),
        Tier(below_ns=1e7, hot=9, rotated=3),
        Tier(below_ns=math.inf, hot=3, rotated=2),
    ),
    processes=1,
    most_processes=1,
    blocks=3,
    retries=0,
    extension=2,
    network_samples=9,
    half_width=0.03,
    sentinel_drift=0.1,
    warm_up_samples=6,
    warm_up_limit_s=0.5,
    trial_limit_s=5.0,
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
