"""Time kernels and networks with the host's clock, inside a worker process."""

import contextlib
import ctypes
import math
import resource
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opmark.bench.clock.scheduling import UNFILTERED
from opmark.bench.clock.turns import Part, Turns, take_turns
from opmark.bench.worker.backend import CHAIN, PARALLEL, SINGLE, SUM, Backend, Bench, Prepared
from opmark.bench.worker.calls import allocated_bytes
from opmark.core.errors import MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.work import Work
from opmark.core.measurements.records import HOT, NETWORK, ROTATED
from opmark.core.units import format_bytes
from opmark.kinds import work_of

# Runtimes compute these kinds in the memory of the input if they can.
_IN_PLACE = frozenset({"elementwise", "movement"})
# Runtimes that have prepared a network in this process.
_LOADED: set[str] = set()
# Rotated copies run in groups of about this length.
_GROUP_NS = 1_000_000
# Words of eight bytes in a line of 64.
_LINE_WORDS = 8
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class HostKernelTiming:
    """A kernel as one call, or as two stacks of copies: the difference between the stacks is the time of the copies.

    Raises `MeasurementError` or `UnavailableError` if the kernel cannot be measured.
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
        # The second call of a long kernel is as fast as the later ones.
        self._latency_ns = bench.clock.warm_up(self._stack.call, enough_ns=bench.clock.protocol.warm_up_enough_ns)
        self._construction = SINGLE
        self._kernel_ns = max(1.0, self._latency_ns - bench.overhead_ns)
        self._stack_copies()

    def hot(self) -> dict[str, Any]:
        """Measure one block with everything in cache, in turns with the sentinels."""
        protocol = self._bench.clock.protocol
        scheduling = self._bench.settle(self._latency_ns)
        tier = protocol.tier(self._kernel_ns)
        parts = [self._part(self._stack, self._latency_ns, tier.samples)]
        if self._base is not None:
            parts.insert(0, self._part(self._base, self._base_ns, tier.samples))
        taken = take_turns(
            self._bench.clock, parts, self._bench.sentinels, turns=tier.hot, limit_s=protocol.look_limit_s
        )
        return {
            "label": HOT,
            "construction": self._construction,
            "copies": self._stack.copies,
            "base_copies": self._base.copies if self._base is not None else 0,
            **_encoded(taken, self._stack.copies, scheduling),
        }

    def rotated(self) -> dict[str, Any]:
        """Measure one block over copies in turn, so that each returns only after the last-level cache is full.

        One call runs a group of copies and takes up to a millisecond. There are at most `rotated_copies` copies of
        together at most `rotated_bytes`. Small kernels, and kernels that read little of a large table, rotate through
        fewer bytes than the cache holds. A kernel of at least `sweep_above_ns` needs no copies: before each of its
        calls, as many other bytes go through the cache; so too where copies are added up.
        """
        if not self._work.moved_bytes:
            # A view touches no element, so the cache does not matter.
            return {**self.hot(), "label": ROTATED}
        alone = self._base is None and self._kernel_ns >= self._bench.clock.protocol.sweep_above_ns
        if alone or self._construction == SUM:
            return self._swept()
        clock = self._bench.clock
        protocol = clock.protocol
        wanted = math.ceil(protocol.rotated_cache_share * self._bench.last_level_bytes / self._work.moved_bytes)
        affordable = max(protocol.rotated_bytes, 2 * self._bench.last_level_bytes) // self._copy_bytes
        copies = max(1, min(protocol.rotated_copies, wanted, affordable))
        groups = max(1, min(copies, round(copies * self._kernel_ns / _GROUP_NS)))
        size = math.ceil(copies / groups)
        prepared: list[Prepared] = []
        try:
            end_ns = clock.timer.now_ns() + protocol.look_limit_s * 1e9
            for _ in range(math.ceil(copies / size)):
                prepared.append(self._prepare(size, PARALLEL if size > 1 else SINGLE, rotated=True))
                if clock.timer.now_ns() > end_ns:
                    break
            turn = _Turn(prepared)
            scheduling = self._bench.settle(size * self._kernel_ns)
            with clock.burst():
                for _ in prepared:
                    turn.call()
            taken = take_turns(
                clock,
                # One call per sample and none beside it: with more, the same copies would return too soon.
                [Part(call=turn.call, calls=1, untimed=0)],
                self._bench.sentinels,
                turns=protocol.tier(self._kernel_ns).rotated,
                limit_s=protocol.look_limit_s,
            )
        finally:
            for item in prepared:
                item.close()
        return {
            "label": ROTATED,
            "construction": PARALLEL if size > 1 else SINGLE,
            "copies": size,
            "base_copies": 0,
            **_encoded(taken, size, scheduling),
        }

    def _swept(self) -> dict[str, Any]:
        """Measure one block of calls, each after other work has gone through the cache.

        In a sum, the first copy brings the activations back: of the others, only the weights are not in cache.
        """
        protocol = self._bench.clock.protocol
        sweep = _sweep(math.ceil(protocol.rotated_cache_share * self._bench.last_level_bytes), self._bench)
        scheduling = self._bench.settle(self._latency_ns)
        stacks = [self._stack] if self._base is None else [self._base, self._stack]
        taken = take_turns(
            self._bench.clock,
            [Part(call=stack.call, calls=1, before=sweep) for stack in stacks],
            self._bench.sentinels,
            turns=protocol.tier(self._kernel_ns).rotated,
            limit_s=protocol.look_limit_s,
        )
        return {
            "label": ROTATED,
            "construction": self._construction,
            "copies": self._stack.copies,
            "base_copies": self._base.copies if self._base is not None else 0,
            **_encoded(taken, self._stack.copies, scheduling),
        }

    def close(self) -> None:
        """Free the copies."""
        self._stack.close()
        if self._base is not None:
            self._base.close()

    def _part(self, prepared: Prepared, latency_ns: float, samples: int) -> Part:
        return Part(call=prepared.call, calls=self._bench.clock.calls(latency_ns), samples=samples)

    def _prepare(self, copies: int, construction: str, *, rotated: bool = False) -> Prepared:
        with self._bench.building():
            return self._bench.backend.prepare(
                self._kernel, self._bench.target, copies=copies, construction=construction, rotated=rotated
            )

    def _stack_copies(self) -> None:
        """Replace the single call by stacks if the fixed cost of a call dominates, or if a single call differs."""
        protocol = self._bench.clock.protocol
        construction = self._bench.backend.construction(self._kernel)
        # Kernels work in place only inside a chain, and a single call may convert layouts around a kernel.
        differs = construction == SUM or (construction == CHAIN and self._kernel.kind in _IN_PLACE)
        if self._kernel_ns >= protocol.slope_below_ns and not differs:
            return
        copies = stack_copies(self._kernel_ns, self._work, self._bench.level2_bytes, protocol.most_copies)
        single = self._stack
        if (2 + copies) * self._copy_bytes > protocol.model_limit_bytes:
            return
        # In a chain, the first and the last copy touch the bound buffers: a chain of two has the same two.
        self._base = self._prepare(2, CHAIN) if construction == CHAIN else single
        self._stack = self._prepare(self._base.copies + copies, construction)
        if self._base is not single:
            single.close()
        self._construction = construction
        self._base_ns = self._bench.clock.warm_up(self._base.call)
        self._latency_ns = self._bench.clock.warm_up(self._stack.call)
        self._kernel_ns = max(1.0, (self._latency_ns - self._base_ns) / copies)


class HostNetworkTiming:
    """A whole network, called once per sample."""

    def __init__(self, model: str, dimensions: Mapping[str, int], bench: Bench) -> None:
        self._bench = bench
        if bench.backend.name not in _LOADED:
            # The libraries that load with the first network do not count as its memory.
            with bench.building():
                bench.backend.prepare_network(model, bench.target, dimensions=dimensions).close()
            _LOADED.add(bench.backend.name)
        before = _reset_peak()
        with bench.building():
            self._prepared = bench.backend.prepare_network(model, bench.target, dimensions=dimensions)
        self._latency_ns = bench.clock.warm_up(self._prepared.call)
        self._peak_bytes = max(0, _peak_bytes() - before)

    def block(self) -> dict[str, Any]:
        """Measure one block of single calls."""
        protocol = self._bench.clock.protocol
        scheduling = self._bench.settle(self._latency_ns)
        part = Part(call=self._prepared.call, calls=1, samples=protocol.network_samples)
        taken = take_turns(
            self._bench.clock,
            [part],
            self._bench.sentinels,
            turns=protocol.network_turns,
            limit_s=protocol.look_limit_s,
        )
        return {
            "label": NETWORK,
            "construction": SINGLE,
            "copies": 1,
            "base_copies": 0,
            "peak_memory_bytes": self._peak_bytes,
            **_encoded(taken, 1, scheduling),
        }

    def close(self) -> None:
        """Free the network."""
        self._prepared.close()


def stack_copies(kernel_ns: float, work: Work, level2_bytes: int, most: int) -> int:
    """The copies to add to the base: about a sample's length, with all weights in half of the level-2 cache."""
    least = 4 if kernel_ns < 1e6 else 2
    by_time = round(350_000 / max(kernel_ns, 1.0))
    by_cache = level2_bytes // 2 // work.weight_bytes if work.weight_bytes else most
    return max(least, min(most, by_time, by_cache))


@cache
def _swept_memory(size_bytes: int) -> Any:
    return np.ones(size_bytes // 8)


def _sweep(size_bytes: int, bench: Bench) -> Callable[[], None]:
    """A call that reads one word of every cache line of `size_bytes`, then lets the runtime find itself in cache."""
    empty = _empty_call(bench.backend, bench.target)
    if bench.backend.timer() is not None:  # this machine's caches do not change what a backend's own clock says
        return empty
    words = _swept_memory(size_bytes)[::_LINE_WORDS]

    def sweep() -> None:
        words.sum()
        empty()

    return sweep


@cache
def _empty_call(backend: Backend, target: Target) -> Callable[[], None]:
    return backend.prepare_empty(target, copies=1).call


class _Turn:
    """Calls the groups in turn."""

    def __init__(self, groups: list[Prepared]) -> None:
        self._calls = [group.call for group in groups]
        self._next = 0

    def call(self) -> None:
        self._calls[self._next]()
        self._next = (self._next + 1) % len(self._calls)


def _encoded(taken: Turns, copies: int, scheduling: str) -> dict[str, Any]:
    """The fields of a block; the last part are the samples, and one before it is their base."""
    samples = taken.samples[-1]
    base = taken.samples[0] if len(taken.samples) > 1 else None
    return {
        "calls": samples.calls,
        "ns": [round(ns, 1) for ns in samples.ns],
        "clean": samples.flags,
        "base_ns": [round(ns, 1) for ns in base.ns] if base else [],
        "base_clean": base.flags if base else "",
        "faults_per_call": round(samples.faults_per_call / copies, 4),
        "scheduling": scheduling if samples.filtered else UNFILTERED,
        "sentinels": {name: [round(ns) for ns in readings] for name, readings in taken.readings.items()},
    }


def _reset_peak() -> int:
    """Reset the peak of the resident memory if the system allows it, and return the resident bytes.

    Freed memory goes back to the system first. Otherwise a network that reuses pages of an earlier one would seem to
    need no memory.
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
