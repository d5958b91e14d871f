"""The interface of a runtime that can be measured; `opmark.bench.backends` has one file per runtime."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from opmark.bench.clock.clock import Clock, Timer
from opmark.bench.clock.machine import device_slug
from opmark.bench.clock.protocol import MeasuringProtocol
from opmark.bench.clock.turns import Part
from opmark.bench.worker.divided import DividedNetwork
from opmark.bench.worker.neighbour import Neighbour
from opmark.core.errors import UnavailableError, UsageError
from opmark.core.hardware.target import Target, parse_target_name
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact
from opmark.core.measurements.estimate import label
from opmark.core.registry import Registry, unknown_name

SINGLE = "single"
# Each copy feeds the next one, as in a network; the runtime may work in place.
CHAIN = "chain"
# All copies read one input, because the output cannot be an input.
PARALLEL = "parallel"
# All copies read one input, and one result leaves: their sum. Single calls would convert layouts around each copy.
SUM = "sum"
CONSTRUCTIONS = (SINGLE, CHAIN, PARALLEL, SUM)


class Prepared(Protocol):
    """Work that is ready to be timed; its buffers are allocated and bound once."""

    copies: int

    def call(self) -> None:
        """Run all copies once, and return when they are finished."""

    def close(self) -> None:
        """Free everything."""


class KernelTiming(Protocol):
    """A kernel in a worker. Each method measures one block and returns the fields of its record."""

    def hot(self) -> dict[str, Any]:
        """Measure one block with everything in cache."""

    def rotated(self) -> dict[str, Any]:
        """Measure one block with nothing in cache."""

    def close(self) -> None:
        """Free everything."""


class NetworkTiming(Protocol):
    """A whole network in a worker."""

    def block(self) -> dict[str, Any]:
        """Measure one block of single calls, and return the fields of its record."""

    def close(self) -> None:
        """Free everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One kernel of a sequence as the runtime executes it: its name and the indices of the operators it covers.

    A layout reorder that the runtime inserts covers no operator.
    """

    name: str
    covers: tuple[int, ...]


class Backend(ABC):
    """A runtime. Methods import its heavy modules; loading the class does not.

    `prepare` and the methods after it run in a worker process, after `start`.
    """

    name: ClassVar[str]
    # The graph language of its kernels: `onnx` or `aten`.
    language: ClassVar[str]
    # The way to get it, where that is not a package of its own name.
    to_install: ClassVar[str] = ""

    @abstractmethod
    def unavailable(self) -> str | None:
        """The reason why this runtime cannot be used here; None if it can."""

    @abstractmethod
    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """The targets of this runtime on `device`: one per provider and number of threads."""

    @abstractmethod
    def facts(self) -> Mapping[str, Fact]:
        """The facts that must agree before measurements are merged: versions, and the provider's build."""

    def environment_variables(self, target: Target) -> Mapping[str, str]:
        """The environment variables of a worker process, such as allocator settings."""
        del target
        return {}

    def start(self, target: Target) -> None:  # noqa: B027 (most runtimes have nothing to do)
        """Set up this process for `target`: thread counts, inference mode. Called once, before any `prepare`."""

    def timer(self) -> Timer | None:
        """The runtime's own clock; None for the machine's clock."""
        return None

    def sentinels(self) -> Mapping[str, Prepared] | None:
        """The fixed pieces of work that reveal drift, by name; None for the processor's `compute` and `memory`."""
        return None

    def device(self) -> str | None:
        """The slug of the runtime's device; None for the processor of this machine."""
        return None

    def hardware(self) -> Mapping[str, Fact]:
        """The caches and multiprocessors of a device of its own, in place of the processor's; empty without one."""
        return {}

    def neighbour(self) -> Neighbour | None:
        """The way to run something beside a kernel on the runtime's own clock; None for a process on another core."""
        return None

    def adapt(self, protocol: MeasuringProtocol) -> MeasuringProtocol:
        """`protocol` adapted to the runtime's device; most runtimes leave it unchanged."""
        return protocol

    def as_run(self, kernel: Kernel) -> Kernel:
        """The kernel that the runtime executes for `kernel`, if its device chooses the implementation."""
        return kernel

    def kernel_timing(self, kernel: Kernel, bench: "Bench") -> KernelTiming | None:
        """A way of its own to time `kernel`, built and ready; None for the host's clock. Raises as `prepare` does."""
        del kernel, bench
        return None

    def network_timing(self, model: str, dimensions: Mapping[str, int], bench: "Bench") -> NetworkTiming | None:
        """A way of its own to time the network `model`; None for the host's clock. Raises as `prepare_network` does."""
        del model, dimensions, bench
        return None

    @abstractmethod
    def construction(self, kernel: Kernel) -> str:
        """`CHAIN`, `PARALLEL` or `SUM`: the arrangement of several copies of `kernel`.

        Raises `UnavailableError` or `MeasurementError` if this runtime has no such kernel (`skipped`).
        """

    @abstractmethod
    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Build `copies` copies of `kernel`, each with its own weights. One call runs all of them.

        With `rotated`, every copy also has its own inputs and outputs, and none feeds another. Otherwise the copies
        share activations, which stay in cache. Raises `UnavailableError` or `MeasurementError` if the kernel cannot
        run (`skipped`).
        """

    @abstractmethod
    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """Build a chain of the cheapest kernel; the intercept over `copies` is the fixed cost of a call."""

    @abstractmethod
    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """Build the whole network with all optimisations, as users run it; `model` is a file or a name of the zoo."""

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """Build one network of `kernels`, each fed by the previous one, with all optimisations.

        Raises `UnavailableError` or `MeasurementError` if it cannot run.
        """
        del kernels
        raise UnavailableError(f"{target.name} does not run sequences of operators")

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """The kernels that the runtime executes for that sequence. Raises as `prepare_sequence` does."""
        del kernels
        raise UnavailableError(f"{target.name} does not report the kernels it runs")

    def divided(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> DividedNetwork:
        """The network `model`, ready to be executed in parts. Raises as `prepare_network` does."""
        del model, dimensions
        raise UnavailableError(f"{target.name} does not execute networks in parts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings that all trials of one worker share.

    `level2_bytes` is the level-2 cache of one core, `last_level_bytes` the largest cache. `overhead_ns` is the cost of
    an empty call. Samples are taken in turns with the `sentinels`. `settle` waits for a quiet machine before long
    samples and returns the scheduling of the row.
    """

    backend: Backend
    target: Target
    clock: Clock
    settle: Callable[[float], str]
    level2_bytes: int
    last_level_bytes: int
    overhead_ns: float = 0.0
    sentinels: Mapping[str, Part] = field(default_factory=dict)
    # Entered while a runtime builds: the threads it starts then inherit the priority.
    building: Callable[[], AbstractContextManager[object]] = field(default=nullcontext)

    def measure_overhead(self) -> float:
        """The fixed cost of one call in ns: the time of a chain, extrapolated to no kernel."""
        few, many = (self._empty(copies) for copies in (2, 2 + self.clock.protocol.most_copies))
        slope = (many - few) / self.clock.protocol.most_copies
        return max(0.0, few - 2 * slope)

    def _empty(self, copies: int) -> float:
        prepared = self.backend.prepare_empty(self.target, copies=copies)
        try:
            latency_ns = self.clock.warm_up(prepared.call)
            samples = self.clock.take(prepared.call, latency_ns=latency_ns, samples=20)
            return label(samples.clean_or_all)
        finally:
            prepared.close()


BACKENDS: Registry[Backend] = Registry("opmark.bench.backends", "BACKEND", "backend")


def backend_of(target_name: str) -> Backend:
    """The backend whose name begins `target_name`, such as `onnxruntime-cpu-t1`. Raises `UnknownNameError`."""
    runtime, _ = parse_target_name(target_name)
    names = [name for name in BACKENDS.names() if runtime == name or runtime.startswith(f"{name}-")]
    if not names:
        raise unknown_name("backend", runtime, BACKENDS.names())
    return BACKENDS.load(max(names, key=len))


def adapted(protocol: MeasuringProtocol, targets: Sequence[Target]) -> MeasuringProtocol:
    """`protocol` adapted to the device of `targets`; the targets of one run have one device."""
    for name in sorted({target.backend for target in targets}):
        protocol = BACKENDS.load(name).adapt(protocol)
    return protocol


def available_target(target_name: str) -> tuple[Backend, Target]:
    """The target of that name on this machine.

    Raises `UnavailableError` if its runtime cannot be used here, `UsageError` if the runtime has no such target.
    """
    backend = backend_of(target_name)
    reason = backend.unavailable()
    if reason is not None:
        raise UnavailableError(f"cannot measure on {target_name}: {reason}", hint=backend.to_install or None)
    return target_named(target_name, device_slug())


def target_named(target_name: str, device: str) -> tuple[Backend, Target]:
    """The target of that name on `device`. Raises `UsageError` if the installed runtime has no such provider."""
    backend = backend_of(target_name)
    _, threads = parse_target_name(target_name)
    offered = backend.targets(device, (threads,))
    for target in offered:
        if target.name == target_name:
            return backend, target
    raise UsageError(
        f"{backend.name} has no target {target_name!r} here",
        hint=f"it has: {', '.join(target.name for target in offered) or 'none'}",
    )
