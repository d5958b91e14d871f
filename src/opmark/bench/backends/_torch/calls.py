"""ATen calls and modules ready to be made again and again, on whichever device their tensors are."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from opmark.bench.backends._torch.refusal import refusal
from opmark.bench.backends._torch.tensors import chain_argument, operands
from opmark.core.call import AtenCall
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.kernel import Kernel
from opmark.kinds import kind_of


class Calls:
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


class Network:
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


def call_of(kernel: Kernel) -> AtenCall:
    """`kernel` as torch's own call. Raises `UnavailableError` where it has none."""
    kind = kind_of(kernel)
    call = kind.to_aten(kind.parse(kernel))
    if call is None:
        raise UnavailableError("torch has no such kernel")
    return call


def operator_of(call: AtenCall) -> Any:
    """The operator that `call` names. Raises `UnavailableError` where this torch has none."""
    import torch

    name, _, overload = call.op.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    operator = getattr(packet, overload or "default", None)
    if operator is None:
        raise UnavailableError(f"this torch has no aten::{call.op}")
    return operator


def prepared_calls(call: AtenCall, *, copies: int, chain: bool, rotated: bool, device: str = "cpu") -> Calls:
    """`copies` of `call` with tensors on `device`, made once to see that torch takes them.

    Raises `UnavailableError` or `MeasurementError` where it does not.
    """
    operator = operator_of(call)
    arguments = operands(call, copies=copies, rotated=rotated, device=device)
    # The function under the wrapper: what it adds is not what eager code pays.
    prepared = Calls(operator._op, arguments, chain_argument(call) if chain else None)
    try:
        with refusal():
            prepared.call()
    except MeasurementError:
        prepared.close()
        raise
    return prepared
