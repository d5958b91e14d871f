"""What a runtime must offer to be measured; one file of `opmark.bench.backends` per runtime."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from opmark.bench.clock.protocol import Protocol as MeasuringRules
from opmark.bench.clock.timer import Timer
from opmark.core.environment import Fact
from opmark.core.errors import UnavailableError, UsageError
from opmark.core.kernel import Kernel
from opmark.core.registry import Registry, unknown_name
from opmark.core.target import Target, parse_target_name

if TYPE_CHECKING:
    from opmark.bench.worker.host_timing import Bench

SINGLE = "single"
# Copies feed one another: what a kernel costs inside a network, in place where the runtime works in place.
CHAIN = "chain"
# Copies read one input: for kernels whose output cannot be their input.
PARALLEL = "parallel"
CONSTRUCTIONS = (SINGLE, CHAIN, PARALLEL)


class Prepared(Protocol):
    """Something ready to be timed, its buffers allocated and bound once."""

    copies: int

    def call(self) -> None:
        """Run all copies once; returns when they are finished."""

    def close(self) -> None:
        """Free everything."""


class Trial(Protocol):
    """A kernel in a worker: each call gives one block of samples, as the fields of its record."""

    def hot(self) -> dict[str, Any]:
        """With everything in cache."""

    def rotated(self) -> dict[str, Any]:
        """With nothing in cache."""

    def close(self) -> None:
        """Free everything."""


class NetworkBlocks(Protocol):
    """A whole network in a worker."""

    def block(self) -> dict[str, Any]:
        """One block of single calls, as the fields of its record."""

    def close(self) -> None:
        """Free everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One kernel that a runtime makes of a sequence: its name, and the places of the operators it covers.

    A layout reorder that the runtime inserts covers none.
    """

    name: str
    covers: tuple[int, ...]


class Backend(ABC):
    """A runtime. Its heavy module is imported inside the methods, never when this class is loaded.

    `prepare` and what follows it run in a worker process, after `start`.
    """

    name: ClassVar[str]
    # The graph language of its kernels: `onnx` or `aten`.
    language: ClassVar[str]

    @abstractmethod
    def unavailable(self) -> str | None:
        """Why this runtime cannot be used here, or None where it can."""

    @abstractmethod
    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """Every target of this runtime on `device`, one per provider and number of threads."""

    @abstractmethod
    def facts(self) -> Mapping[str, Fact]:
        """What must agree before measurements merge: versions, the provider's build."""

    def environment_variables(self, target: Target) -> Mapping[str, str]:
        """What must be set before a worker process starts (allocator settings)."""
        del target
        return {}

    def start(self, target: Target) -> None:  # noqa: B027 (most runtimes have nothing to do)
        """Set up this process for `target`: thread counts, inference mode. Called once, before anything is prepared."""

    def timer(self) -> Timer | None:
        """A clock of its own, or None for the machine's."""
        return None

    def sentinels(self) -> Mapping[str, Prepared] | None:
        """Two fixed pieces of work, `compute` and `memory`, that tell drift; None for the processor's own."""
        return None

    def device(self) -> str | None:
        """The slug of what it runs on, or None for the processor of this machine."""
        return None

    def rules(self, protocol: MeasuringRules) -> MeasuringRules:
        """`protocol` as this runtime's device needs it; most take it as it is."""
        return protocol

    def as_run(self, kernel: Kernel) -> Kernel:
        """What this runtime makes of `kernel` where its device chooses the implementation."""
        return kernel

    def kernel_trial(self, kernel: Kernel, bench: "Bench") -> Trial:
        """`kernel`, built and ready to be timed by the rules of its device. Raises as `prepare` does."""
        from opmark.bench.worker.host_timing import KernelTrial

        return KernelTrial(kernel, bench)

    def network_trial(self, model: str, dimensions: Mapping[str, int], bench: "Bench") -> NetworkBlocks:
        """The whole network `model`, built and ready to be timed. Raises as `prepare_network` does."""
        from opmark.bench.worker.host_timing import NetworkTrial

        return NetworkTrial(model, dimensions, bench)

    @abstractmethod
    def construction(self, kernel: Kernel) -> str:
        """`CHAIN` or `PARALLEL`: how several copies of `kernel` are put together.

        Raises `UnavailableError` or `MeasurementError` where this runtime has no such kernel (`skipped`).
        """

    @abstractmethod
    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """`copies` copies of `kernel`, each with weights of its own.

        With `rotated`, every copy has its own inputs and outputs too and none feeds another; else activations are
        shared so that they stay in cache. One call runs them all, so that the call's fixed cost is paid once.
        Raises `UnavailableError` or `MeasurementError` where it cannot run (`skipped`).
        """

    @abstractmethod
    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of the cheapest kernel there is; its intercept over `copies` is the fixed cost of a call."""

    @abstractmethod
    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The whole network as users run it, all optimisations on; `model` is a file or a zoo name."""

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """`kernels`, each fed by the one before, as one network that the runtime may optimise as it likes.

        Raises `UnavailableError` or `MeasurementError` where it cannot run.
        """
        del kernels
        raise UnavailableError(f"{target.name} does not run sequences of operators")

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """What the runtime makes of that sequence, by its own account. Raises as `prepare_sequence` does."""
        del kernels
        raise UnavailableError(f"{target.name} does not tell what it runs")


BACKENDS: Registry[Backend] = Registry("opmark.bench.backends", "BACKEND", "backend")


def backend_of(target_name: str) -> Backend:
    """The backend of `onnxruntime-cpu-t1`: the one whose name begins it. Raises `UnknownNameError`."""
    runtime, _ = parse_target_name(target_name)
    names = [name for name in BACKENDS.names() if runtime == name or runtime.startswith(f"{name}-")]
    if not names:
        raise unknown_name("backend", runtime, BACKENDS.names())
    return BACKENDS.load(max(names, key=len))


def rules_on(targets: Sequence[Target], protocol: MeasuringRules) -> MeasuringRules:
    """`protocol` as the device of `targets` needs it; targets of one run are of one device."""
    for name in sorted({target.backend for target in targets}):
        protocol = BACKENDS.load(name).rules(protocol)
    return protocol


def target_named(target_name: str, device: str) -> tuple[Backend, Target]:
    """The target of that name on `device`. Raises `UsageError` where the installed runtime has no such provider."""
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
