"""PyTorch as it is used without a compiler: one ATen call per kernel, on the processor, in inference mode."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from opmark.bench.backend import CHAIN, PARALLEL, Backend, Piece, Prepared
from opmark.bench.backends._aten_sequence import Sequenced
from opmark.bench.backends._aten_tensors import chain_argument, operands
from opmark.core.call import AtenCall
from opmark.core.environment import Fact
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernel import Kernel
from opmark.core.target import Target
from opmark.core.tensor import TensorSpec
from opmark.kinds import kind_of
from opmark.models.variant import is_training, split_variant

# Freed memory stays with the process: else every large output is paid for in page faults, a quarter to a half of a
# network's time that depends on whatever else runs. 32 MiB is the largest threshold that glibc accepts.
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_OPTION = "malloc-keep"


class _Calls:
    """Copies of a call, each with its own arguments; `call` makes them one after the other."""

    def __init__(
        self, operator: Any, arguments: Sequence[tuple[list[Any], dict[str, Any]]], chained: int | None
    ) -> None:
        import torch

        self.copies = len(arguments)
        self._operator = operator
        self._arguments = list(arguments)
        self._chained = chained
        self._kept: list[Any] = [None] * len(arguments)
        self._inference_mode = torch.inference_mode

    def call(self) -> None:
        """Make every call; a chain hands its result on, else each result lives until the same call is made again."""
        operator, kept, place = self._operator, self._kept, self._chained
        with self._inference_mode():
            if place is None:
                for index, (positional, keywords) in enumerate(self._arguments):
                    kept[index] = operator(*positional, **keywords)
                return
            result = None
            for positional, keywords in self._arguments:
                if result is not None:
                    positional[place] = result
                result = operator(*positional, **keywords)
                if type(result) is tuple:
                    result = result[0]

    def close(self) -> None:
        """Free the tensors."""
        self._arguments.clear()
        self._kept.clear()


class _Network:
    """A whole network: `run` makes one call of it, a forward pass or a training step."""

    copies = 1

    def __init__(self, run: Callable[[], object], *, trains: bool) -> None:
        import torch

        self._run: Callable[[], object] | None = run
        self._mode: Callable[[], AbstractContextManager[Any]] = torch.enable_grad if trains else torch.inference_mode

    def call(self) -> None:
        """One forward pass, or one training step."""
        assert self._run is not None
        with self._mode():
            self._run()

    def close(self) -> None:
        """Free the module."""
        self._run = None


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
        return PARALLEL if chain_argument(_call(kernel)) is None else CHAIN

    def prepare(self, kernel: Kernel, target: Target, *, copies: int, construction: str, rotated: bool) -> Prepared:
        """Copies of the call, each with its own weights."""
        del target
        return _prepared(_call(kernel), copies=copies, chain=construction == CHAIN and not rotated, rotated=rotated)

    def prepare_empty(self, target: Target, *, copies: int) -> Prepared:
        """A chain of sixteen-element rectifiers."""
        del target
        spec = TensorSpec((16,))
        call = AtenCall(op="relu.default", arguments=(spec,), outputs=(spec,))
        return _prepared(call, copies=copies, chain=True, rotated=False)

    def prepare_network(self, model: str, target: Target, *, dimensions: Mapping[str, int]) -> Prepared:
        """The module as users run it: forward in inference mode, or a whole training step."""
        del target
        from opmark.models.resolve import torch_module

        module, inputs = torch_module(model, dimensions=dimensions)
        if is_training(split_variant(model)[1]):
            from opmark.models.capture.training import TrainingStep

            return _Network(TrainingStep(module, inputs), trains=True)
        return _Network(lambda: module(*inputs), trains=False)

    def prepare_sequence(self, kernels: Sequence[Kernel], target: Target) -> Prepared:
        """One call after the other, as eager code makes them."""
        del target
        calls = [_call(kernel) for kernel in kernels]
        return Sequenced(calls, [_operator(call)._op for call in calls])

    def pieces(self, kernels: Sequence[Kernel], target: Target) -> tuple[Piece, ...]:
        """Every call by itself: eager code fuses nothing."""
        del target
        return tuple(
            Piece(name=_call(kernel).op.partition(".")[0], covers=(place,)) for place, kernel in enumerate(kernels)
        )


def _call(kernel: Kernel) -> AtenCall:
    kind = kind_of(kernel)
    call = kind.to_aten(kind.parse(kernel))
    if call is None:
        raise UnavailableError("torch has no such kernel")
    return call


def _operator(call: AtenCall) -> Any:
    import torch

    name, _, overload = call.op.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    operator = getattr(packet, overload or "default", None)
    if operator is None:
        raise UnavailableError(f"this torch has no aten::{call.op}")
    return operator


def _prepared(call: AtenCall, *, copies: int, chain: bool, rotated: bool) -> Prepared:
    operator = _operator(call)
    arguments = operands(call, copies=copies, rotated=rotated)
    # The function under the wrapper: what it adds is not what eager code pays.
    prepared = _Calls(operator._op, arguments, chain_argument(call) if chain else None)
    try:
        prepared.call()
    except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
        prepared.close()
        raise MeasurementError(f"torch refuses it: {str(error).splitlines()[0][:200]}") from error
    return prepared


BACKEND = TorchEager()
