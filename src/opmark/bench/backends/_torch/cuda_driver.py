"""A CUDA GPU through torch: recorded graphs, events behind a blocking kernel, and cache flushes."""

# ruff: noqa: TID253 (this module is imported only to measure on a GPU)

import contextlib
from typing import Any

import torch

from opmark.bench.clock.gpu import ClockReader
from opmark.bench.worker.gpu_timing import Enqueue
from opmark.core.errors import MeasurementError

# The device is held for this time while the host enqueues a graph.
_GRAPH_HOLD_NS = 100_000.0
# The fastest clock of any GPU: holding too long wastes time, holding too briefly spoils the sample.
_MOST_GHZ = 2.2
# torch returns unused memory if it keeps more than this share of the GPU's.
_KEPT_SHARE = 0.25


class CudaDriver:
    """The first GPU that torch sees, on its own stream: the default stream cannot be recorded."""

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
        """Record one graph of `calls` calls. Raises `MeasurementError` if a call waits for the device."""
        # Libraries initialise in their first call, which must not be recorded.
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
        """Overwrite the level-2 cache, and time one call."""
        self._flushed.zero_()
        return self.held_ns(enqueue, hold_ns)

    def held_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """The device's time in ns for the work that `enqueue` adds while a blocking kernel runs."""
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
        """The clock of the GPU's processors."""
        return self._clock.mhz()

    def forget_peak(self) -> None:
        """Reset the peak to the memory allocated now."""
        torch.cuda.reset_peak_memory_stats()
        self._base_bytes = torch.cuda.memory_allocated()

    def peak_bytes(self) -> int:
        """The peak memory of tensors since then."""
        return max(0, int(torch.cuda.max_memory_allocated()) - self._base_bytes)

    def release(self) -> None:
        """Return unused memory once it is a large share of the GPU's."""
        if torch.cuda.memory_reserved() > _KEPT_SHARE * self.memory_bytes:
            torch.cuda.empty_cache()

    def _end(self, error: RuntimeError) -> None:
        """End this process: after an illegal access of a kernel, only a new process can use the device."""
        raise SystemExit(f"the GPU failed: {_first_line(error)}") from error


class _Graph:
    """A recorded graph."""

    def __init__(self, graph: Any, driver: CudaDriver) -> None:
        self._graph = graph
        self._driver = driver

    def replay_ns(self) -> float:
        """Replay once, enqueued while the device is held."""
        return self._driver.held_ns(self._graph.replay, _GRAPH_HOLD_NS)

    def close(self) -> None:
        """Free the graph and its memory."""
        self._graph.reset()


class Multiply:
    """A few large matrix products: they follow the clock and the power limit."""

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
    """A few copies larger than the cache: they follow the memory's clock and its other users."""

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
