"""ATen calls and modules, prepared once and called many times, on the device of their tensors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opmark.bench.backends._torch.tensors import chain_argument, operands
from opmark.bench.worker.calls import call_in
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kernel import Kernel
from opmark.core.kernels.tensor import TensorSpec
from opmark.models.source import is_training, split_variant

# A ReLU on sixteen elements.
CHEAPEST = AtenCall(op="relu.default", arguments=(TensorSpec((16,)),), outputs=(TensorSpec((16,)),))
# torch raises NotImplementedError for an operator without a kernel on this device.
_REFUSALS = (RuntimeError, IndexError, TypeError, NotImplementedError)


@contextmanager
def refusal() -> Iterator[None]:
    """Run the block. Raises `MeasurementError` with one sentence if torch refuses a call."""
    try:
        yield
    except _REFUSALS as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise MeasurementError(f"torch refuses it: {said[:200]}") from error


class Calls:
    """Copies of a call, each with its own arguments; `call` makes them in order.

    A result is freed as soon as the next call has read it, as in a network, so that two pieces of memory serve all of
    them. With `apart`, every result has memory of its own.
    """

    def __init__(
        self,
        operator: Any,
        arguments: Sequence[tuple[list[Any], dict[str, Any]]],
        chained: int | None,
        *,
        apart: bool = False,
    ) -> None:
        import torch

        self.copies = len(arguments)
        self._operator = operator
        self._arguments = list(arguments)
        self._chained = chained
        self._first = None if chained is None else arguments[0][0][chained]
        self._kept: list[Any] = [None] * len(arguments) if apart else []
        self._inference_mode = torch.inference_mode

    def call(self) -> None:
        """Make every call. A chain passes its result on."""
        operator, kept, place = self._operator, self._kept, self._chained
        with self._inference_mode():
            if place is not None:
                result = self._first
                for positional, keywords in self._arguments:
                    positional[place] = result
                    result = operator(*positional, **keywords)
                    positional[place] = None
                    if type(result) is tuple:
                        result = result[0]
            elif kept:
                for index, (positional, keywords) in enumerate(self._arguments):
                    kept[index] = operator(*positional, **keywords)
            else:
                for positional, keywords in self._arguments:
                    operator(*positional, **keywords)

    def close(self) -> None:
        """Free the tensors."""
        self._arguments.clear()
        self._kept.clear()
        self._first = None


class PreparedNetwork:
    """A whole network; `run` makes one forward pass or one training step."""

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


def call_of(kernel: Kernel) -> AtenCall:
    """`kernel` as a call of torch. Raises `UnavailableError` if torch has no such kernel."""
    call = call_in("aten", kernel)
    if not isinstance(call, AtenCall):
        raise UnavailableError("torch has no such kernel")
    return call


def operator_of(call: AtenCall) -> Any:
    """The operator of `call`. Raises `UnavailableError` if this torch has no such operator."""
    import torch

    name, _, overload = call.op.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    operator = getattr(packet, overload or "default", None)
    if operator is None:
        raise UnavailableError(f"this torch has no aten::{call.op}")
    return operator


def prepared_calls(call: AtenCall, *, copies: int, chain: bool, rotated: bool, device: str = "cpu") -> Calls:
    """Prepare `copies` of `call` with tensors on `device`, and make them once to check that torch accepts them.

    Raises `UnavailableError` or `MeasurementError` if torch does not accept them.
    """
    operator = operator_of(call)
    arguments = operands(call, copies=copies, rotated=rotated, device=device)
    # The function inside the wrapper: eager code does not pay for the wrapper.
    prepared = Calls(operator._op, arguments, chain_argument(call) if chain else None, apart=rotated)
    try:
        with refusal():
            prepared.call()
    except MeasurementError:
        prepared.close()
        raise
    return prepared


def network_call(model: str, dimensions: Mapping[str, int], *, device: str = "cpu") -> PreparedNetwork:
    """Load `model` onto `device`: a forward pass, or a training step if its variant trains."""
    from opmark.models.resolve import torch_module

    module, inputs = torch_module(model, dimensions=dimensions)
    if device != "cpu":
        module.to(device)
        inputs = tuple(item.to(device) for item in inputs)
    if is_training(split_variant(model)[1]):
        from opmark.models.capture.torch_variants import TrainingStep

        return PreparedNetwork(TrainingStep(module, inputs), trains=True)
    return PreparedNetwork(lambda: module(*inputs), trains=False)
