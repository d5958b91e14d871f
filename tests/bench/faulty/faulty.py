"""A runtime whose kernels misbehave as their activation says: crash, hang, allocate and so on; else take 50 µs."""

import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opmark.bench.worker.backend import PARALLEL, Backend, Bench, KernelTiming, Prepared
from opmark.bench.worker.host_timing import HostKernelTiming
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact


class _Fault:
    def __init__(self, kind: str, copies: int = 1) -> None:
        self.kind = kind
        self.copies = copies

    def call(self) -> None:
        if self.kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.kind == "hang":
            time.sleep(3600)
        if self.kind == "raise":
            raise ZeroDivisionError("in the kernel")
        if self.kind == "exit":
            os._exit(7)
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "allocate":
            # Piece by piece and never written to: nothing but the worker's own limit objects before it hurts.
            physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            held = [bytes(1 << 30) for _ in range(2 * physical >> 30)]
            held.clear()
        if self.kind == "empty":
            return
        end = time.perf_counter_ns() + 50_000
        while time.perf_counter_ns() < end:
            pass

    def close(self) -> None:
        """Nothing to free."""


class _NotANumber(HostKernelTiming):
    def hot(self) -> dict[str, Any]:
        found = super().hot()
        return {**found, "ns": [math.nan for _ in found["ns"]]}


class Faulty(Backend):
    name = "faulty"
    language = "onnx"

    def unavailable(self) -> str | None:
        return None

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        return tuple(Target(device=device, backend=self.name, threads=count) for count in threads)

    def facts(self) -> Mapping[str, Fact]:
        return {}

    def construction(self, kernel: Kernel) -> str:
        return PARALLEL

    def kernel_timing(self, kernel: Kernel, bench: Bench) -> KernelTiming | None:
        return (_NotANumber if kernel.params["activation"] == "nan" else HostKernelTiming)(kernel, bench)

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        kind = str(kernel.params["activation"])
        if kind == "refuse":
            raise MeasurementError("no such kernel here")
        return _Fault(kind, copies)

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        return _Fault("empty", copies)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        return _Fault(model)


BACKEND = Faulty()
