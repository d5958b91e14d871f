"""The rows that a benchmark hands to a dataset: one per kernel or network on a target."""

from dataclasses import dataclass

from opmark.core.errors import ContentError
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work

OK = "ok"
COARSE = "coarse"
DOUBTFUL = "doubtful"
# Of releases before standard errors: coarse or doubtful.
LOW_QUALITY = "low_quality"
SKIPPED = "skipped"
FAILED = "failed"
STATUSES = (OK, COARSE, LOW_QUALITY, DOUBTFUL, SKIPPED, FAILED)
USABLE = (OK, COARSE, LOW_QUALITY, DOUBTFUL)

# The use of a network: constants are fitted on training networks, development judges by held-out ones, and sealed ones
# are looked at once, at the end.
TRAINING = "training"
HELD_OUT = "held-out"
SEALED = "sealed"
ROLES = (TRAINING, HELD_OUT, SEALED)

# The largest standard error of a label with that status, as a fraction of it.
ERROR_OF_OK = 0.015
ERROR_OF_COARSE = 0.05

# The quantiles of the clean samples that are stored with every label.
QUANTILES = tuple(step / 20 for step in range(21))


def status_of(standard_error: float) -> str:
    """The status of a label with that standard error: it follows from nothing else."""
    if standard_error <= ERROR_OF_OK:
        return OK
    return COARSE if standard_error <= ERROR_OF_COARSE else DOUBTFUL


def reason_of(standard_error: float) -> str:
    """The reason for that status; empty if it is ok."""
    return "" if standard_error <= ERROR_OF_OK else f"standard error of {standard_error:.1%}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One kernel on one target. A failed or skipped trial has a reason and no latency.

    `latency_hot_ns` has the inputs in cache and excludes the runtime's overhead per call.
    `latency_rotated_ns` uses copies in turn that together exceed the last-level cache, or starts with a flushed cache.
    `overhead_ns` is the runtime's fixed cost per call; on a GPU, the host's time to enqueue this kernel.
    `journal` is the file that holds the samples, `measured_at` the UTC time of the first; None in older releases.
    Latencies are told at one state of the machine: the measured times were `clock_ratio` times as long. The standard
    errors are fractions of the latencies; releases before schema 2 have none.
    Raises `ContentError` for an unknown status, or a usable one without a positive latency.
    """

    kernel: Kernel
    work: Work
    target: str
    status: str
    reason: str = ""
    latency_hot_ns: float | None = None
    latency_rotated_ns: float | None = None
    standard_error_hot: float | None = None
    standard_error_rotated: float | None = None
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
    journal: str | None = None
    measured_at: str | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ContentError(f"unknown status {self.status!r}", where=str(self.kernel))
        if self.status in USABLE and not (self.latency_hot_ns is not None and self.latency_hot_ns > 0):
            raise ContentError(f"latency_hot_ns is {self.latency_hot_ns}, not positive", where=str(self.kernel))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMeasurement:
    """The end-to-end latency of one network on one target: the ground truth of network predictions.

    Predictors may be fitted on networks whose `role` is `training`, on no others (`ROLES`). `size` is the side of
    the image or the length of the sequence, for networks that offer a choice. On a GPU, the host takes `host_ns` to
    enqueue all calls and the device `device_ns` to make them; None elsewhere. `journal` and `measured_at` as in
    `Measurement`.
    """

    network: str
    family: str
    target: str
    graph_id: str
    status: str
    reason: str = ""
    role: str = HELD_OUT
    batch: int = 1
    size: int | None = None
    latency_ns: float | None = None
    standard_error: float | None = None
    host_ns: float | None = None
    device_ns: float | None = None
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
    journal: str | None = None
    measured_at: str | None = None
