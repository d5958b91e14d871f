"""A GPU made of numbers: kernels take what they are told, its clock and its cache are the test's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

from opmark.core.errors import MeasurementError


@dataclass
class FakeKernel:
    """A call that the host hands over in `enqueue_ns`; the device takes `hot_ns`, or `cold_ns` out of cache."""

    gpu: "FakeGpu"
    hot_ns: float = 2_000.0
    cold_ns: float = 5_000.0
    enqueue_ns: float = 4_000.0
    copies: int = 1
    closed: bool = False

    def enqueue(self) -> None:
        self.gpu.host_ns += self.enqueue_ns
        self.gpu.enqueued.append(self)

    def call(self) -> None:
        self.enqueue()
        self.gpu.finish()

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeGraph:
    gpu: "FakeGpu"
    kernel: FakeKernel
    calls: int
    closed: bool = False

    def replay_ns(self) -> float:
        self.gpu.replays.append(self.calls)
        return self.calls * self.kernel.hot_ns * 1590.0 / self.gpu.mhz

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeGpu:
    """Its host's time passes only when something is handed over; it runs at `clocks`, one reading after the other."""

    level2_bytes: int = 50 << 20
    memory_bytes: int = 80 << 30
    clocks: Iterator[float | None] = field(default_factory=lambda: repeat(1590.0))
    recordable: bool = True
    host_ns: float = 0.0
    mhz: float = 1590.0
    enqueued: list[FakeKernel] = field(default_factory=list)
    graphs: list[FakeGraph] = field(default_factory=list)
    replays: list[int] = field(default_factory=list)
    holds: list[float] = field(default_factory=list)
    flushes: int = 0
    peak: int = 0
    released: int = 0

    def record(self, enqueue: Callable[[], object], calls: int) -> FakeGraph:
        if not self.recordable:
            raise MeasurementError("cannot be recorded in a CUDA graph: operation not permitted")
        self.enqueued.clear()
        enqueue()
        kernel = self.enqueued[0]
        graph = FakeGraph(self, kernel, calls)
        self.graphs.append(graph)
        return graph

    def cold_ns(self, enqueue: Callable[[], object], hold_ns: float) -> float:
        self.flushes += 1
        self.holds.append(hold_ns)
        self.enqueued.clear()
        before = self.host_ns
        enqueue()
        # What the host takes longer than the device is held back is part of the sample.
        late = max(0.0, self.host_ns - before - hold_ns)
        return self.enqueued[0].cold_ns + late

    def held_ns(self, enqueue: Callable[[], object], hold_ns: float) -> float:
        self.holds.append(hold_ns)
        self.enqueued.clear()
        before = self.host_ns
        enqueue()
        late = max(0.0, self.host_ns - before - hold_ns)
        return sum(kernel.hot_ns for kernel in self.enqueued) + late

    def finish(self) -> None:
        self.enqueued.clear()

    def clock_mhz(self) -> float | None:
        found = next(self.clocks)
        self.mhz = found or self.mhz
        return found

    def forget_peak(self) -> None:
        self.peak = 0

    def peak_bytes(self) -> int:
        return self.peak

    def release(self) -> None:
        self.released += 1
