"""PyTorch as it is used without a compiler: one ATen call per kernel, on the processor, in inference mode."""

from collections.abc import Mapping, Sequence

from opmark.bench.backends._torch.calls import Network, call_of, operator_of, prepared_calls
from opmark.bench.backends._torch.sequence import Sequenced
from opmark.bench.backends._torch.tensors import chain_argument
from opmark.bench.worker.backend import CHAIN, PARALLEL, Backend, Piece, Prepared
from opmark.core.call import AtenCall
from opmark.core.environment import Fact
from opmark.core.kernel import Kernel
from opmark.core.target import Target
from opmark.core.tensor import TensorSpec
from opmark.models.variant import is_training, split_variant

# Freed memory stays with the process: else every large output is paid for in page faults, a quarter to a half of a
# network's time that depends on whatever else runs. 32 MiB is the largest threshold that glibc accepts.
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_OPTION = "malloc-keep"


class TorchEager(Backend):
    """Eager torch on the processor."""

    name = "torch-eager"
    language = "aten"

    def unavailable(self) -> str | None:
        """Why it cannot be used, or None."""
        try:
            import torch  # noqa: F401
        except ImportError as error:
            return f"{error.name} is not installed"
        return None

    def targets(self, device: str, threads: Sequence[int] = (1,)) -> tuple[Target, ...]:
        """One per number of threads."""
        from importlib.metadata import version

        release = ".".join(version("torch").split(".")[:2])
        return tuple(
            Target(device=device, backend=self.name, threads=count, version=release, options=(_OPTION,))
            for count in threads
        )

    def facts(self) -> Mapping[str, Fact]:
        """Version, and the libraries that do the work."""
        import torch

        return {
            "version": torch.__version__,
            "capability": torch.backends.cpu.get_cpu_capability(),
            "onednn": bool(torch._C._has_mkldnn),
            "mkl": bool(torch._C.has_mkl),
        }

    def environment_variables(self, target: Target) -> Mapping[str, str]:
        """The allocator's settings, which are read before the first line of Python runs."""
        del target
        return _ALLOCATOR

    def start(self, target: Target) -> None:
        """Set the number of threads; numbers too small to be normal count as zero, as in networks they never occur."""
        import torch

        torch.set_num_threads(target.threads)
        torch.set_flush_denormal(True)

    def construction(self, kernel: Kernel) -> str:
        """A chain where the result can stand in for an input."""
        return PARALLEL if chain_argument(call_of(kernel)) is None else CHAIN

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Copies of the call, each with its own weights."""
        del target
        return prepared_calls(
            call_of(kernel), copies=copies, chain=construction == CHAIN and not rotated, rotated=rotated
        )

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of sixteen-element rectifiers."""
        del target
        spec = TensorSpec((16,))
        call = AtenCall(op="relu.default", arguments=(spec,), outputs=(spec,))
        return prepared_calls(call, copies=copies, chain=True, rotated=False)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The module as users run it: forward in inference mode, or a whole training step."""
        del target
        from opmark.models.resolve import torch_module

        module, inputs = torch_module(model, dimensions=dimensions)
        if is_training(split_variant(model)[1]):
            from opmark.models.capture.training import TrainingStep

            return Network(TrainingStep(module, inputs), trains=True)
        return Network(lambda: module(*inputs), trains=False)

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """One call after the other, as eager code makes them."""
        del target
        calls = [call_of(kernel) for kernel in kernels]
        return Sequenced(calls, [operator_of(call)._op for call in calls])

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """Every call by itself: eager code fuses nothing."""
        del target
        return tuple(
            Piece(name=call_of(kernel).op.partition(".")[0], covers=(place,)) for place, kernel in enumerate(kernels)
        )


BACKEND = TorchEager()
