"""One kernel or network inside a worker process: built once, measured block by block."""

import contextlib
import ctypes
import math
import resource
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opmark.bench.clock.clock import Clock, Samples
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE, Backend, Prepared
from opmark.bench.worker.footprint import allocated_bytes
from opmark.core.errors import MeasurementError
from opmark.core.kernel import Kernel
from opmark.core.target import Target
from opmark.core.units import format_bytes
from opmark.core.work import Work
from opmark.kinds import work_of

# Kinds that a runtime computes in the memory of their input wherever it may.
_IN_PLACE = frozenset({"elementwise", "movement"})
# Runtimes that have prepared a network in this process.
_LOADED: set[str] = set()
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every trial in this process shares.

    `level2_bytes` is one core's, `last_level_bytes` the largest cache; `overhead_ns` is the cost of an empty call.
    `settle` waits for a quiet machine before long samples and says how the row was scheduled.
    """

    backend: Backend
    target: Target
    clock: Clock
    settle: Callable[[float], str]
    level2_bytes: int
    last_level_bytes: int
    overhead_ns: float = 0.0
    # Runtimes start their threads while they build; threads inherit the priority of the one that starts them.
    building: Callable[[], AbstractContextManager[object]] = field(default=contextlib.nullcontext)

    def measure_overhead(self) -> float:
        """The fixed cost of one call: where a chain's time would end with no kernel in it."""
        few, many = (self._empty(copies) for copies in (2, 2 + self.clock.protocol.most_copies))
        slope = (many - few) / self.clock.protocol.most_copies
        return max(0.0, few - 2 * slope)

    def _empty(self, copies: int) -> float:
        from opmark.core.estimate import label

        prepared = self.backend.prepare_empty(self.target, copies=copies)
        try:
            latency_ns = self.clock.warm_up(prepared.call)
            samples = self.clock.take(prepared.call, latency_ns=latency_ns, samples=20)
            return label(clean_or_all(samples))
        finally:
            prepared.close()


class KernelTrial:
    """A kernel, built as one call or as a pair of stacks of copies whose difference is the copies' own time.

    Raises `MeasurementError` or `UnavailableError` where it cannot be measured.
    """

    def __init__(self, kernel: Kernel, bench: Bench) -> None:
        self._kernel = kernel
        self._bench = bench
        self._work = work_of(kernel)
        self._copy_bytes = max(1, allocated_bytes(kernel, bench.backend.language))
        limit = bench.clock.protocol.model_limit_bytes
        if self._copy_bytes > limit:
            raise MeasurementError(f"needs {format_bytes(self._copy_bytes)}, more than {format_bytes(limit)}")
        self._stack: Prepared = self._prepare(1, SINGLE)
        self._base: Prepared | None = None
        self._base_ns = 0.0
        self._latency_ns = bench.clock.warm_up(self._stack.call)
        self._construction = SINGLE
        self._kernel_ns = max(1.0, self._latency_ns - bench.overhead_ns)
        self._stack_copies()

    def hot(self) -> dict[str, Any]:
        """One block of samples with everything in cache."""
        protocol = self._bench.clock.protocol
        scheduling = self._bench.settle(self._latency_ns)
        wanted = math.ceil(protocol.tier(self._kernel_ns).hot / protocol.blocks)
        limit_s = protocol.trial_limit_s / protocol.blocks / protocol.processes
        base = None
        if self._base is not None:
            base = self._bench.clock.take(
                self._base.call, latency_ns=self._base_ns, samples=max(2, math.ceil(wanted / 3)), limit_s=limit_s
            )
        samples = self._bench.clock.take(
            self._stack.call,
            latency_ns=self._latency_ns,
            samples=wanted,
            limit_s=limit_s,
            awake=base is not None,
        )
        return {
            "label": "hot",
            "construction": self._construction,
            "copies": self._stack.copies,
            "base_copies": self._base.copies if self._base is not None else 0,
            **_encoded(samples, base, self._stack.copies, scheduling),
        }

    def rotated(self) -> dict[str, Any]:
        """All samples over copies that, walked in turn, come back only after the last-level cache is full.

        The copies are split into groups, each one call of about a sample's length. No more than `rotated_copies`
        of them are made, nor more than `rotated_bytes`: small kernels, and those that read little of a large table,
        rotate through fewer bytes than the cache holds.
        """
        if not self._work.moved_bytes:
            # A view touches no element: it is the same in and out of cache.
            return {**self.hot(), "label": "rotated"}
        clock = self._bench.clock
        protocol = clock.protocol
        wanted = math.ceil(protocol.rotated_cache_share * self._bench.last_level_bytes / self._work.moved_bytes)
        affordable = max(protocol.rotated_bytes, 2 * self._bench.last_level_bytes) // self._copy_bytes
        copies = max(1, min(protocol.rotated_copies, wanted, affordable))
        groups = max(1, min(copies, round(copies * self._kernel_ns / protocol.sample_ns)))
        size = math.ceil(copies / groups)
        prepared: list[Prepared] = []
        try:
            end_ns = clock.timer.now_ns() + protocol.trial_limit_s / 2 * 1e9
            for _ in range(math.ceil(copies / size)):
                prepared.append(self._prepare(size, PARALLEL if size > 1 else SINGLE, rotated=True))
                if clock.timer.now_ns() > end_ns:
                    break
            turn = _Turn(prepared)
            scheduling = self._bench.settle(size * self._kernel_ns)
            with clock.burst():
                for _ in prepared:
                    turn.call()
            # One call a sample: more would bring the same copies back too soon.
            latency_ns = max(size * self._kernel_ns, float(protocol.sample_ns))
            samples = clock.take(
                turn.call,
                latency_ns=latency_ns,
                samples=protocol.tier(self._kernel_ns).rotated,
                limit_s=protocol.trial_limit_s / 2,
            )
        finally:
            for item in prepared:
                item.close()
        return {
            "label": "rotated",
            "construction": PARALLEL if size > 1 else SINGLE,
            "copies": size,
            "base_copies": 0,
            **_encoded(samples, None, size, scheduling),
        }

    def close(self) -> None:
        """Free the copies."""
        self._stack.close()
        if self._base is not None:
            self._base.close()

    def _prepare(self, copies: int, construction: str, *, rotated: bool = False) -> Prepared:
        with self._bench.building():
            return self._bench.backend.prepare(
                self._kernel, self._bench.target, copies=copies, construction=construction, rotated=rotated
            )

    def _stack_copies(self) -> None:
        """Replace the single call by stacks where a single call says more about the call than about the kernel."""
        protocol = self._bench.clock.protocol
        construction = self._bench.backend.construction(self._kernel)
        # What works in place does so only inside a chain, whatever it costs.
        in_place = construction == CHAIN and self._kernel.kind in _IN_PLACE
        if self._kernel_ns >= protocol.slope_below_ns and not in_place:
            return
        copies = stack_copies(self._kernel_ns, self._work, self._bench.level2_bytes, protocol.most_copies)
        single = self._stack
        if (2 + copies) * self._copy_bytes > protocol.model_limit_bytes:
            return
        # In a chain the first and last copy touch the bound buffers: two of them are what a longer chain shares.
        self._base = self._prepare(2, CHAIN) if construction == CHAIN else single
        self._stack = self._prepare(self._base.copies + copies, construction)
        if self._base is not single:
            single.close()
        self._construction = construction
        self._base_ns = self._bench.clock.warm_up(self._base.call)
        self._latency_ns = self._bench.clock.warm_up(self._stack.call)
        self._kernel_ns = max(1.0, (self._latency_ns - self._base_ns) / copies)


class NetworkTrial:
    """A whole network, called once per sample as its users call it."""

    def __init__(self, model: str, dimensions: Mapping[str, int], bench: Bench) -> None:
        self._bench = bench
        if bench.backend.name not in _LOADED:
            # What its libraries load with the first network is not that network's memory.
            with bench.building():
                bench.backend.prepare_network(model, bench.target, dimensions=dimensions).close()
            _LOADED.add(bench.backend.name)
        before = _reset_peak()
        with bench.building():
            self._prepared = bench.backend.prepare_network(model, bench.target, dimensions=dimensions)
        self._latency_ns = bench.clock.warm_up(self._prepared.call)
        self._peak_bytes = max(0, _peak_bytes() - before)

    def block(self) -> dict[str, Any]:
        """One block of single calls."""
        protocol = self._bench.clock.protocol
        scheduling = self._bench.settle(self._latency_ns)
        samples = self._bench.clock.take(
            self._prepared.call,
            latency_ns=max(self._latency_ns, float(protocol.sample_ns)),
            samples=math.ceil(protocol.network_samples / protocol.blocks),
            limit_s=protocol.trial_limit_s / protocol.blocks,
        )
        return {
            "label": "network",
            "construction": SINGLE,
            "copies": 1,
            "base_copies": 0,
            "peak_memory_bytes": self._peak_bytes,
            **_encoded(samples, None, 1, scheduling),
        }

    def close(self) -> None:
        """Free the network."""
        self._prepared.close()


def stack_copies(kernel_ns: float, work: Work, level2_bytes: int, most: int) -> int:
    """How many copies to stack on the base: about a sample's length, with all their weights in the level-2 cache."""
    least = 4 if kernel_ns < 1e6 else 2
    by_time = round(350_000 / max(kernel_ns, 1.0))
    by_cache = level2_bytes // 2 // work.weight_bytes if work.weight_bytes else most
    return max(least, min(most, by_time, by_cache))


def clean_or_all(samples: Samples) -> list[float]:
    """The uninterrupted samples, or all of them where there is none."""
    clean = [ns for ns, is_clean in zip(samples.ns, samples.clean, strict=True) if is_clean]
    return clean or list(samples.ns)


class _Turn:
    """Calls one group after the other."""

    def __init__(self, groups: list[Prepared]) -> None:
        self._calls = [group.call for group in groups]
        self._next = 0

    def call(self) -> None:
        self._calls[self._next]()
        self._next = (self._next + 1) % len(self._calls)


def _encoded(samples: Samples, base: Samples | None, copies: int, scheduling: str) -> dict[str, Any]:
    return {
        "calls": samples.calls,
        "ns": [round(ns, 1) for ns in samples.ns],
        "clean": _flags(samples),
        "base_ns": [round(ns, 1) for ns in base.ns] if base else [],
        "base_clean": _flags(base) if base else "",
        "faults_per_call": samples.faults_per_call / copies,
        "scheduling": scheduling if samples.filtered else "unfiltered",
    }


def _flags(samples: Samples) -> str:
    return "".join("1" if clean else "0" for clean in samples.clean)


def _reset_peak() -> int:
    """Forget the largest memory so far where the system allows it; the resident bytes now.

    What was freed goes back to the system first: a network built in pages that an earlier one left in the heap would
    seem to need none.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")
    return _peak_bytes()


def _peak_bytes() -> int:
    try:
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(line.split()[1]) * 1024
