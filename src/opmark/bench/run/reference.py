"""One kernel measured for a while as suites measure theirs: what the machine does to it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from opmark.bench.clock.machine import caches, device_slug
from opmark.bench.clock.protocol import FULL
from opmark.bench.worker.backend import backend_of, target_named
from opmark.bench.worker.process import WorkerProcess
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.estimate import half_width, label, median
from opmark.kinds import KINDS

# A few tenths of a millisecond on one core: long enough to be called once at a time, its weights in its own cache.
_SIDE = 512
_ROWS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`label_ns` is the 10th percentile of clean samples; `mean_bias` and `median_bias` are how far above it those of
    all samples lie. `half_width` is the 95 % confidence half-width of the label, as a fraction of it.
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
        """From all samples and the clean ones among them. Raises `ValueError` without samples."""
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
    """A matrix product on `target_name`, in a worker of its own, for about `seconds`.

    Raises `UnavailableError` or `MeasurementError` where that target cannot be measured here.
    """
    backend = backend_of(target_name)
    reason = backend.unavailable()
    if reason is not None:
        raise UnavailableError(f"cannot measure on {target_name}: {reason}")
    _, target = target_named(target_name, device_slug())
    kind = KINDS.load("gemm")
    kernel = kind.kernel(kind.parameters(m=_ROWS, k=_SIDE, n=_SIDE))
    request = {
        "do": "kernel",
        "trial": kernel.key,
        "label": "hot",
        "kernel": {"kind": kernel.kind, "parameters": plain(kernel.params)},
    }
    worker = WorkerProcess(target, backend, backend.rules(FULL), caches())
    ns: list[float] = []
    clean_ns: list[float] = []
    try:
        end = time.monotonic() + seconds
        while not ns or time.monotonic() < end:
            answer = worker.ask(request)
            refused = answer.get("skipped") or answer.get("failed")
            if refused is not None:
                raise MeasurementError(f"{target_name} does not run the reference kernel: {refused}")
            each = [value / answer["copies"] for value in answer["ns"]]
            ns += each
            clean_ns += [value for value, flag in zip(each, answer["clean"], strict=True) if flag == "1"]
    finally:
        worker.stop()
    return Reference.of(f"gemm {_ROWS} × {_SIDE} × {_SIDE} on {target_name}", ns, clean_ns)
