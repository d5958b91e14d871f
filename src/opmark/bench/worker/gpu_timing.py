"""Time kernels and networks on a GPU: recorded graphs for the hot label, a flushed cache for the rotated label."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opmark.bench.clock.gpu import at_usual_clock
from opmark.bench.worker.backend import SINGLE, Bench, Prepared
from opmark.bench.worker.calls import allocated_bytes
from opmark.core.errors import MeasurementError
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.estimate import median
from opmark.core.measurements.records import HOT, NETWORK, ROTATED
from opmark.core.units import format_bytes
from opmark.kinds import work_of

# The scheduling of samples by a device's own clock, which the system does not interrupt.
DEVICE = "device"
# Longer graphs take too long to record.
_MOST_CALLS = 2048
_ATTEMPTS = 4
# Calls enqueued at once to time the enqueueing: fewer than the device's queue holds.
_ENQUEUED = 16
_ENQUEUE_SAMPLES = 5
# The device is held for this multiple of the enqueue time of a call.
_HOLD = 3.0
_LEAST_HOLD_NS = 50_000.0
# The device is held for this multiple of the enqueue time of a network, and its time is taken so often.
_NETWORK_HOLD = 1.5
_DEVICE_SAMPLES = 3


Enqueue = Callable[[], object]


class Replayable(Protocol):
    """A recorded sequence of calls that the device replays without the host."""

    def replay_ns(self) -> float:
        """Replay all calls, and return the time between the device's own marks around them, in ns."""

    def close(self) -> None:
        """Free the recording."""


class GpuDriver(Protocol):
    """One GPU in this process; tests use a driver without a GPU. No method changes settings of the GPU."""

    level2_bytes: int
    memory_bytes: int

    def record(self, enqueue: Enqueue, calls: int) -> Replayable:
        """Record `calls` calls as one graph. Raises `MeasurementError` if that is impossible."""

    def held_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """Hold the device for `hold_ns` while the host enqueues work, and return the device's time for it in ns."""

    def cold_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """Flush exactly the level-2 cache, make one call, and return its time in ns.

        A blocking kernel holds the device for at least `hold_ns`, so that the host enqueues the call before its time
        begins.
        """

    def finish(self) -> None:
        """Wait until the device has finished. Raises `SystemExit` if the device has failed for this process."""

    def clock_mhz(self) -> float | None:
        """The clock of the GPU's processors now; None if the driver does not report it."""

    def forget_peak(self) -> None:
        """Reset `peak_bytes`."""

    def peak_bytes(self) -> int:
        """The peak memory of tensors since the last reset."""

    def release(self) -> None:
        """Return unused memory to the device."""


class EnqueuedCall(Prepared, Protocol):
    """A prepared kernel that can also be enqueued without waiting for it."""

    def enqueue(self) -> None:
        """Enqueue one call, and return at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The samples of a device, with its clock after each sample if known."""

    ns: tuple[float, ...]
    clocks_mhz: tuple[float, ...]

    def fields(self, *, quantile: float) -> dict[str, Any]:
        """The fields of a block with these samples."""
        clean = at_usual_clock(self.clocks_mhz) or (True,) * len(self.ns)
        return {
            "calls": 1,
            "ns": [round(ns, 1) for ns in self.ns],
            "clean": "".join("1" if kept else "0" for kept in clean),
            "base_ns": [],
            "base_clean": "",
            "base_copies": 0,
            "construction": SINGLE,
            "scheduling": DEVICE,
            "label_quantile": quantile,
            "clocks_mhz": list(self.clocks_mhz),
        }


class GpuKernelTiming:
    """A kernel as a CUDA graph of unrolled calls, and as single calls after a cache flush.

    Raises `MeasurementError` or `UnavailableError` if the kernel cannot be measured.
    """

    def __init__(self, kernel: Kernel, bench: Bench, driver: GpuDriver, prepare: Callable[[], EnqueuedCall]) -> None:
        self._bench = bench
        self._driver = driver
        self._moves = bool(work_of(kernel).moved_bytes)
        size_bytes = allocated_bytes(kernel, bench.backend.language)
        limit = min(bench.clock.protocol.model_limit_bytes, driver.memory_bytes // 4)
        if size_bytes > limit:
            raise MeasurementError(f"needs {format_bytes(size_bytes)}, more than {format_bytes(limit)}")
        self._prepared = prepare()
        try:
            self._enqueue_ns = enqueue_ns(self._prepared.enqueue, driver, bench.clock.timer.now_ns)
            self.calls, self._graph = unrolled(self._prepared.enqueue, driver, float(bench.clock.protocol.sample_ns))
        except BaseException:
            self._prepared.close()
            raise

    def hot(self) -> dict[str, Any]:
        """Measure one block of replays. The first replay does not count: it ends earlier work of the device."""
        protocol = self._bench.clock.protocol
        self._graph.replay_ns()
        taken = take(self._graph.replay_ns, protocol.tiers[0].hot, self._driver)
        return {
            "label": HOT,
            "copies": self.calls,
            "enqueue_ns": round(self._enqueue_ns, 1),
            "faults_per_call": 0.0,
            **taken.fields(quantile=protocol.label_quantile),
        }

    def rotated(self) -> dict[str, Any]:
        """Measure all samples, each a single call after a flush of the level-2 cache."""
        if not self._moves:
            # A view touches no element, so the cache does not matter.
            return {**self.hot(), "label": ROTATED}
        protocol = self._bench.clock.protocol
        hold_ns = max(_LEAST_HOLD_NS, _HOLD * self._enqueue_ns)

        def sample() -> float:
            return self._driver.cold_ns(self._prepared.enqueue, hold_ns)

        sample()
        taken = take(sample, protocol.tiers[0].rotated, self._driver)
        return {
            "label": ROTATED,
            "copies": 1,
            "enqueue_ns": round(self._enqueue_ns, 1),
            "faults_per_call": 0.0,
            **taken.fields(quantile=protocol.label_quantile),
        }

    def close(self) -> None:
        """Free the graph and the tensors."""
        self._graph.close()
        self._prepared.close()
        self._driver.release()


class GpuNetworkTiming:
    """A whole network, called once per sample until its result is ready."""

    def __init__(self, bench: Bench, driver: GpuDriver, prepare: Callable[[], EnqueuedCall]) -> None:
        self._bench = bench
        self._driver = driver
        driver.forget_peak()
        self._prepared = prepare()
        bench.clock.warm_up(self._prepared.call)
        driver.finish()
        self._peak_bytes = driver.peak_bytes()

    def block(self) -> dict[str, Any]:
        """Measure one block of single calls, and the shares of host and device in them."""
        protocol = self._bench.clock.protocol
        now_ns = self._bench.clock.timer.now_ns
        enqueued_ns: list[float] = []

        def sample() -> float:
            start = now_ns()
            self._prepared.enqueue()
            enqueued_ns.append(float(now_ns() - start))
            self._driver.finish()
            return float(max(1, now_ns() - start))

        sample()
        enqueued_ns.clear()
        taken = take(sample, protocol.network_turns * protocol.network_samples, self._driver)
        host_ns = median(enqueued_ns)
        hold_ns = max(_LEAST_HOLD_NS, _NETWORK_HOLD * host_ns)
        device_ns = [self._driver.held_ns(self._prepared.enqueue, hold_ns) for _ in range(_DEVICE_SAMPLES)]
        return {
            "label": NETWORK,
            "copies": 1,
            "peak_memory_bytes": self._peak_bytes,
            "enqueue_ns": round(host_ns, 1),
            "device_ns": round(median(device_ns), 1),
            "faults_per_call": 0.0,
            **taken.fields(quantile=protocol.label_quantile),
        }

    def close(self) -> None:
        """Free the network."""
        self._prepared.close()
        self._driver.release()


def take(sample: Callable[[], float], count: int, driver: GpuDriver) -> Taken:
    """Take `count` samples, and read the clock after each; no clocks if the driver fails to report one of them."""
    ns: list[float] = []
    clocks: list[float | None] = []
    for _ in range(max(1, count)):
        ns.append(sample())
        clocks.append(driver.clock_mhz())
    known = [mhz for mhz in clocks if mhz is not None]
    return Taken(ns=tuple(ns), clocks_mhz=tuple(known) if len(known) == len(ns) else ())


def unrolled(enqueue: Enqueue, driver: GpuDriver, replay_ns: float) -> tuple[int, Replayable]:
    """Record a graph of enough calls to take at least `replay_ns`, and return the number of calls and the graph.

    Raises `MeasurementError` if the kernel cannot be recorded.
    """
    calls = 1
    for attempt in range(_ATTEMPTS):
        graph = driver.record(enqueue, calls)
        graph.replay_ns()
        took_ns = min(graph.replay_ns(), graph.replay_ns())
        wanted = calls_for(took_ns / calls, replay_ns)
        if took_ns >= replay_ns or calls >= wanted or attempt == _ATTEMPTS - 1:
            break
        graph.close()
        calls = wanted
    return calls, graph


def calls_for(call_ns: float, replay_ns: float) -> int:
    """The number of calls of `call_ns` that take at least `replay_ns`, plus a tenth for warm-up; at most 2,048."""
    return max(1, min(_MOST_CALLS, math.ceil(1.1 * replay_ns / max(call_ns, 1.0))))


def enqueue_ns(enqueue: Enqueue, driver: GpuDriver, now_ns: Callable[[], int]) -> float:
    """The host's time to enqueue one call in ns: the median of a few short bursts."""
    found: list[float] = []
    for _ in range(_ENQUEUE_SAMPLES):
        driver.finish()
        start = now_ns()
        for _ in range(_ENQUEUED):
            enqueue()
        found.append((now_ns() - start) / _ENQUEUED)
    driver.finish()
    return median(found)


def warm_up(read_ns: Callable[[], float], *, agreement: float = 0.01, most: int = 200) -> Sequence[float]:
    """Read a sentinel until three readings in a row differ by less than `agreement`, at most `most` times."""
    readings: list[float] = []
    while len(readings) < most:
        readings.append(read_ns())
        recent = readings[-3:]
        if len(recent) == 3 and max(recent) < (1 + agreement) * min(recent):
            break
    return readings
