"""What bench hands to datasets: one row per kernel or network on a target."""

from dataclasses import dataclass

from opmark.core.errors import ContentError
from opmark.core.kernel import Kernel
from opmark.core.work import Work

OK = "ok"
LOW_QUALITY = "low_quality"
SKIPPED = "skipped"
FAILED = "failed"
STATUSES = (OK, LOW_QUALITY, SKIPPED, FAILED)
USABLE = (OK, LOW_QUALITY)

# The 21 quantiles kept of every label's clean samples: 0, 0.05 … 1.
QUANTILES = tuple(step / 20 for step in range(21))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One trial: a kernel on a target. A failed or skipped one has a reason and no latency.

    `latency_hot_ns` has its inputs in cache and the runtime's per-call overhead removed;
    `latency_rotated_ns` walks over copies that do not fit in the last-level cache, or begins with that cache flushed.
    `overhead_ns` is the runtime's fixed cost per call; on a GPU, the host's time to enqueue this kernel.
    Latencies are at the processor's usual clock; they took `clock_ratio` times as long.
    """

    kernel: Kernel
    work: Work
    target: str
    status: str
    reason: str = ""
    latency_hot_ns: float | None = None
    latency_rotated_ns: float | None = None
    overhead_ns: float | None = None
    construction: str = "single"
    hot_quantiles_ns: tuple[float, ...] = ()
    rotated_quantiles_ns: tuple[float, ...] = ()
    clean_fraction: float | None = None
    clock_ratio: float | None = None
    between_process_variation: float | None = None
    faults_per_call: float | None = None
    samples: int = 0
    processes: int = 0
    scheduling: str = "normal"
    suite: str = ""
    environment_id: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ContentError(f"unknown status {self.status!r}", where=str(self.kernel))
        if self.status in USABLE and not (self.latency_hot_ns is not None and self.latency_hot_ns > 0):
            raise ContentError(f"latency_hot_ns is {self.latency_hot_ns}, not positive", where=str(self.kernel))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMeasurement:
    """One whole network on a target, end to end: the ground truth for sums of predictions.

    `role` is `training` where constants of the network sum may be fitted on it, else `held-out`. `size` is the image's
    side or the sequence length where that can be chosen.
    """

    network: str
    family: str
    target: str
    graph_id: str
    status: str
    reason: str = ""
    role: str = "held-out"
    batch: int = 1
    size: int | None = None
    latency_ns: float | None = None
    quantiles_ns: tuple[float, ...] = ()
    peak_memory_bytes: int | None = None
    faults_per_call: float | None = None
    clean_fraction: float | None = None
    clock_ratio: float | None = None
    samples: int = 0
    processes: int = 0
    scheduling: str = "normal"
    suite: str = ""
    environment_id: str = ""
