"""One kernel or network on a GPU: recorded graphs for the hot label, a flushed cache for the rotated one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opmark.bench.clock.device_clock import at_usual_clock
from opmark.bench.worker.backend import SINGLE, Prepared
from opmark.bench.worker.footprint import allocated_bytes
from opmark.bench.worker.gpu_driver import Enqueue, GpuDriver, Replayable
from opmark.bench.worker.host_timing import Bench
from opmark.core.errors import MeasurementError
from opmark.core.estimate import median
from opmark.core.kernel import Kernel
from opmark.core.records import HOT, NETWORK, ROTATED
from opmark.core.units import format_bytes
from opmark.kinds import work_of

# How samples of a device's own clock were taken: no system interrupts them.
DEVICE = "device"
# A longer graph takes more to record than its kernel is worth.
_MOST_CALLS = 2048
_ATTEMPTS = 4
# Calls handed over at once to see how long that takes: fewer than the device's queue holds.
_ENQUEUED = 16
_ENQUEUE_SAMPLES = 5
# How much longer than handing over a call takes the device is held back.
_HOLD = 3.0
_LEAST_HOLD_NS = 50_000.0


class EnqueuedCall(Prepared, Protocol):
    """A prepared kernel that can also be handed over without waiting for it."""

    def enqueue(self) -> None:
        """Hand over one call; returns at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Samples of a device, with its clock after each where that is known."""

    ns: tuple[float, ...]
    clocks_mhz: tuple[float, ...]

    def fields(self, *, quantile: float) -> dict[str, Any]:
        """What a block says of them."""
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


class GpuKernelTrial:
    """A kernel as a CUDA graph of unrolled calls, and call by call after a flush.

    Raises `MeasurementError` or `UnavailableError` where it cannot be measured.
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
        """One block of replays, the first of which is not looked at: it ends what the device did before."""
        protocol = self._bench.clock.protocol
        wanted = math.ceil(protocol.tiers[0].hot / protocol.blocks)
        self._graph.replay_ns()
        taken = take(self._graph.replay_ns, wanted, self._driver)
        return {
            "label": HOT,
            "copies": self.calls,
            "enqueue_ns": round(self._enqueue_ns, 1),
            "faults_per_call": 0.0,
            **taken.fields(quantile=protocol.label_quantile),
        }

    def rotated(self) -> dict[str, Any]:
        """All calls with the level-2 cache flushed before each."""
        if not self._moves:
            # A view touches no element: it is the same in and out of cache.
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


class GpuNetworkTrial:
    """A whole network, called once per sample as its users call it: until its result is there."""

    def __init__(self, bench: Bench, driver: GpuDriver, prepare: Callable[[], Prepared]) -> None:
        self._bench = bench
        self._driver = driver
        driver.forget_peak()
        self._prepared = prepare()
        bench.clock.warm_up(self._prepared.call)
        driver.finish()
        self._peak_bytes = driver.peak_bytes()

    def block(self) -> dict[str, Any]:
        """One block of single calls."""
        protocol = self._bench.clock.protocol
        now_ns = self._bench.clock.timer.now_ns

        def sample() -> float:
            start = now_ns()
            self._prepared.call()
            return float(max(1, now_ns() - start))

        sample()
        taken = take(sample, math.ceil(protocol.network_samples / protocol.blocks), self._driver)
        return {
            "label": NETWORK,
            "copies": 1,
            "peak_memory_bytes": self._peak_bytes,
            "faults_per_call": 0.0,
            **taken.fields(quantile=protocol.label_quantile),
        }

    def close(self) -> None:
        """Free the network."""
        self._prepared.close()
        self._driver.release()


def take(sample: Callable[[], float], count: int, driver: GpuDriver) -> Taken:
    """`count` samples with the device's clock after each; no clocks where the driver does not know one of them."""
    ns: list[float] = []
    clocks: list[float | None] = []
    for _ in range(max(1, count)):
        ns.append(sample())
        clocks.append(driver.clock_mhz())
    known = [mhz for mhz in clocks if mhz is not None]
    return Taken(ns=tuple(ns), clocks_mhz=tuple(known) if len(known) == len(ns) else ())


def unrolled(enqueue: Enqueue, driver: GpuDriver, replay_ns: float) -> tuple[int, Replayable]:
    """A graph of as many calls as take at least `replay_ns` together, and how many that are.

    Raises `MeasurementError` where the kernel cannot be recorded.
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
    """How many calls of `call_ns` take at least `replay_ns`, a tenth more for what warms up, at most 2,048."""
    return max(1, min(_MOST_CALLS, math.ceil(1.1 * replay_ns / max(call_ns, 1.0))))


def enqueue_ns(enqueue: Enqueue, driver: GpuDriver, now_ns: Callable[[], int]) -> float:
    """The host's time to hand over one call: the median of a few short bursts."""
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
    """Readings of a sentinel until it moves by less than `agreement` over three in a row, or there are `most`."""
    readings: list[float] = []
    while len(readings) < most:
        readings.append(read_ns())
        recent = readings[-3:]
        if len(recent) == 3 and max(recent) < (1 + agreement) * min(recent):
            break
    return readings
