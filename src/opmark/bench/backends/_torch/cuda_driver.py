"""CUDA through torch: recorded graphs, events behind a blocking kernel, a flushed cache."""

# ruff: noqa: TID253 (this module is imported only where something is measured on a GPU)

import contextlib
from typing import Any

import torch

from opmark.bench.clock.nvml import ClockReader
from opmark.bench.worker.gpu_driver import Enqueue
from opmark.core.errors import MeasurementError

# How long the device is held back while a graph is handed over.
_GRAPH_HOLD_NS = 100_000.0
# Where the driver does not tell its clock, the fastest there is: holding too long costs time, too short the sample.
_MOST_GHZ = 2.2
# Memory that torch keeps is given back beyond this part of the card's.
_KEPT_SHARE = 0.25


class CudaDriver:
    """The first GPU that torch sees, on a stream of its own: what is recorded must not be on the default one."""

    def __init__(self) -> None:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        properties = torch.cuda.get_device_properties(0)
        self.level2_bytes = int(getattr(properties, "L2_cache_size", 0)) or (64 << 20)
        self.memory_bytes = int(properties.total_memory)
        torch.cuda.set_stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]
        self._clock = ClockReader()
        self._flushed: Any = torch.empty(self.level2_bytes, dtype=torch.uint8, device="cuda")
        self._before = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._after = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._base_bytes = 0

    def record(self, enqueue: Enqueue, calls: int) -> "_Graph":
        """One graph of `calls` calls. Raises `MeasurementError` where one of them waits for the device."""
        # Made once outside: libraries set themselves up in their first call, which must not be recorded.
        enqueue()
        self.finish()
        graph = torch.cuda.CUDAGraph()
        try:
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                for _ in range(calls):
                    enqueue()
            finally:
                graph.capture_end()
        except RuntimeError as error:
            with contextlib.suppress(RuntimeError):
                graph.reset()
            self.finish()
            raise MeasurementError(f"cannot be recorded in a CUDA graph: {_first_line(error)}") from error
        return _Graph(graph, self)

    def cold_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """One call after writing over as many bytes as the level-2 cache has."""
        self._flushed.zero_()
        return self.held_ns(enqueue, hold_ns)

    def held_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """The device's time for what `enqueue` hands over while a blocking kernel runs."""
        torch.cuda._sleep(int(hold_ns * _MOST_GHZ))  # type: ignore[no-untyped-call]
        self._before.record()
        enqueue()
        self._after.record()
        try:
            self._after.synchronize()
        except RuntimeError as error:
            self._end(error)
        return max(1.0, float(self._before.elapsed_time(self._after)) * 1e6)

    def finish(self) -> None:
        """Wait for the device."""
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            self._end(error)

    def clock_mhz(self) -> float | None:
        """The clock of its processors."""
        return self._clock.mhz()

    def forget_peak(self) -> None:
        """Count from what is allocated now."""
        torch.cuda.reset_peak_memory_stats()
        self._base_bytes = torch.cuda.memory_allocated()

    def peak_bytes(self) -> int:
        """What tensors took beyond that."""
        return max(0, int(torch.cuda.max_memory_allocated()) - self._base_bytes)

    def release(self) -> None:
        """Give kept memory back once it is a good part of the card's."""
        if torch.cuda.memory_reserved() > _KEPT_SHARE * self.memory_bytes:
            torch.cuda.empty_cache()

    def _end(self, error: RuntimeError) -> None:
        """A kernel that reads where it may not leaves this process no way to use the device: a new one takes over."""
        raise SystemExit(f"the GPU gave up: {_first_line(error)}") from error


class _Graph:
    """A recorded graph."""

    def __init__(self, graph: Any, driver: CudaDriver) -> None:
        self._graph = graph
        self._driver = driver

    def replay_ns(self) -> float:
        """One replay, handed over while the device is held back."""
        return self._driver.held_ns(self._graph.replay, _GRAPH_HOLD_NS)

    def close(self) -> None:
        """Free it and its memory."""
        self._graph.reset()


class Multiply:
    """A few large products of matrices: moves with the clock and the power cap."""

    copies = 1

    def __init__(self, side: int = 4096, calls: int = 8) -> None:
        self._left: Any = torch.ones((side, side), dtype=torch.bfloat16, device="cuda")
        self._out: Any = torch.empty_like(self._left)
        self._calls = calls

    def call(self) -> None:
        """Multiply, and wait."""
        for _ in range(self._calls):
            torch.mm(self._left, self._left, out=self._out)
        torch.cuda.synchronize()

    def close(self) -> None:
        """Free the matrices."""
        self._left = self._out = None


class Copy:
    """A few copies larger than the cache: moves with the memory's clock and with whoever else uses it."""

    copies = 1

    def __init__(self, size_bytes: int = 512 << 20, calls: int = 8) -> None:
        self._source: Any = torch.ones(size_bytes, dtype=torch.uint8, device="cuda")
        self._out: Any = torch.empty_like(self._source)
        self._calls = calls

    def call(self) -> None:
        """Copy, and wait."""
        for _ in range(self._calls):
            self._out.copy_(self._source)
        torch.cuda.synchronize()

    def close(self) -> None:
        """Free the arrays."""
        self._source = self._out = None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
