"""Measure one reference kernel the way suites do, to quantify the noise of this machine."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from opmark.bench.clock.machine import caches
from opmark.bench.clock.protocol import FULL
from opmark.bench.worker.backend import available_target
from opmark.bench.worker.pool import WorkerProcess, refusal
from opmark.core.errors import MeasurementError
from opmark.core.measurements.estimate import half_width, label, median
from opmark.core.measurements.records import HOT
from opmark.kinds import KINDS

# A few tenths of a millisecond on one core: long enough for single calls, with the weights in the core's own cache.
_SIDE = 512
_ROWS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The label of a kernel and its errors, all relative to the label.

    `label_ns` is the 10th percentile of the clean samples. `mean_bias` and `median_bias` are the excess of the mean
    and the median of all samples. `half_width` is the half-width of the label's 95 % confidence interval.
    """

    name: str
    label_ns: float
    mean_bias: float
    median_bias: float
    half_width: float
    samples: int
    clean_fraction: float

    @classmethod
    def of(cls, name: str, ns: Sequence[float], clean_ns: Sequence[float]) -> "Reference":
        """Build from all samples and the clean ones among them. Raises `ValueError` without samples."""
        value = label(clean_ns or ns)
        return cls(
            name=name,
            label_ns=value,
            mean_bias=sum(ns) / len(ns) / value - 1,
            median_bias=median(ns) / value - 1,
            half_width=half_width(clean_ns or ns),
            samples=len(ns),
            clean_fraction=len(clean_ns) / len(ns),
        )


def measure_reference(target_name: str, seconds: float) -> Reference:
    """Measure a matrix product on `target_name` in its own worker for about `seconds`.

    Raises `UnavailableError` or `MeasurementError` if that target cannot be measured here.
    """
    backend, target = available_target(target_name)
    kind = KINDS.load("gemm")
    kernel = kind.kernel(kind.parameters(m=_ROWS, k=_SIDE, n=_SIDE))
    request = {"do": "kernel", "labels": [HOT], "kernel": kernel.content()}
    worker = WorkerProcess(target, backend, backend.adapt(FULL), caches())
    ns: list[float] = []
    clean_ns: list[float] = []
    try:
        end = time.monotonic() + seconds
        while not ns or time.monotonic() < end:
            answer = worker.ask(request)
            refused = refusal(answer)
            if refused is not None:
                raise MeasurementError(f"{target_name} does not run the reference kernel: {refused[1]}")
            for block in answer["blocks"]:
                each = [value / block["copies"] for value in block["ns"]]
                ns += each
                clean_ns += [value for value, flag in zip(each, block["clean"], strict=True) if flag == "1"]
    finally:
        worker.stop()
    return Reference.of(f"gemm {_ROWS} × {_SIDE} × {_SIDE} on {target_name}", ns, clean_ns)
