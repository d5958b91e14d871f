"""Eager PyTorch on the processor, in inference mode: one ATen call per kernel."""

from collections.abc import Mapping, Sequence

from opmark.bench.backends._torch.calls import (
    CHEAPEST,
    call_of,
    network_call,
    operator_of,
    prepared_calls,
)
from opmark.bench.backends._torch.sequence import Sequenced
from opmark.bench.backends._torch.tensors import chain_argument
from opmark.bench.worker.backend import CHAIN, PARALLEL, Backend, Piece, Prepared
from opmark.bench.worker.divided import DividedNetwork
from opmark.core.hardware.target import KEEPS_MEMORY, Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.environment import Fact

# The process keeps freed memory. Otherwise every large output causes page faults, which take a quarter to a half of a
# network's time, depending on other load. A threshold for mmap does not do: glibc accepts none above 32 MiB, and larger
# results then come from new pages or kept ones, depending on what ran before.
_ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


class TorchEager(Backend):
    """Eager torch on the processor."""

    name = "torch-eager"
    language = "aten"

    def unavailable(self) -> str | None:
        """The reason why it cannot be used, or None."""
        try:
            import torch  # noqa: F401
        except ImportError as error:
            return f"{error.name} is not installed"
        return None

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One target per number of threads."""
        from importlib.metadata import version

        release = ".".join(version("torch").split(".")[:2])
        return tuple(
            Target(device=device, backend=self.name, threads=count, version=release, options=(KEEPS_MEMORY,))
            for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """The version and the libraries behind it."""
        import torch

        return {
            "version": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "onednn": bool(torch._C._has_mkldnn),
            "mkl": bool(torch._C.has_mkl),
        }

    def environment_variables(self, target: Target) -> Mapping[str, str]:
        """The allocator's settings, which the process reads before it runs Python."""
        del target
        return _ALLOCATOR

    def start(self, target: Target) -> None:
        """Set the number of threads; denormal numbers count as zero, because networks do not have them."""
        import torch

        torch.set_num_threads(target.threads)
        torch.set_flush_denormal(True)

    def construction(self, kernel: Kernel) -> str:
        """A chain if the result can replace an input."""
        return PARALLEL if chain_argument(call_of(kernel)) is None else CHAIN

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Copies of the call, each with its own weights."""
        del target
        return prepared_calls(
            call_of(kernel), copies=copies, chain=construction == CHAIN and not rotated, rotated=rotated
        )

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of ReLUs on sixteen elements."""
        del target
        return prepared_calls(CHEAPEST, copies=copies, chain=True, rotated=False)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The module: a forward pass in inference mode, or a whole training step."""
        del target
        return network_call(model, dimensions)

    def divided(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> DividedNetwork:
        """The calls of the module, as eager code makes them."""
        from opmark.bench.backends._torch.divided import divided_network

        del target
        return divided_network(model, dimensions)

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """The calls in order, as eager code makes them."""
        del target
        calls = [call_of(kernel) for kernel in kernels]
        return Sequenced(calls, [operator_of(call)._op for call in calls])

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """Every call by itself: eager code does not fuse."""
        del target
        return tuple(
            Piece(name=call_of(kernel).op.partition(".")[0], covers=(place,)) for place, kernel in enumerate(kernels)
        )


BACKEND = TorchEager()
