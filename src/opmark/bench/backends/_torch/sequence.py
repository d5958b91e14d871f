"""A sequence of different ATen calls, each fed by the previous one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from opmark.bench.backends._torch.calls import refusal
from opmark.bench.backends._torch.tensors import operands
from opmark.core.errors import MeasurementError
from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import TensorSpec

# Position of a tensor in a call: an argument, or an element of an argument that is a list.
_Place = tuple[int, int | None]


class Sequenced:
    """Calls with their arguments; `call` makes them in order. Raises `MeasurementError` if torch refuses one."""

    copies = 1

    def __init__(self, calls: Sequence[AtenCall], operators: Sequence[Any]) -> None:
        import torch

        places: list[_Place | None] = [None]
        for before, after in pairwise(calls):
            places.append(_place(after, before.outputs[0]))
        arguments = [operands(call, copies=1, rotated=False)[0] for call in calls]
        self._steps = list(zip(operators, arguments, places, strict=True))
        self._inference_mode = torch.inference_mode
        self._kept: Any = None
        with refusal():
            self.call()

    def call(self) -> None:
        """Make all calls once; the last result lives until the next time."""
        result = None
        with self._inference_mode():
            for operator, (positional, keywords), place in self._steps:
                if place is not None:
                    index, inside = place
                    if inside is None:
                        positional[index] = result
                    else:
                        positional[index][inside] = result
                result = operator(*positional, **keywords)
                if type(result) is tuple:
                    result = result[0]
        self._kept = result

    def close(self) -> None:
        """Free the tensors."""
        self._steps.clear()
        self._kept = None


def _place(call: AtenCall, made: TensorSpec) -> _Place:
    """The first activation of `call` with the shape and type of `made`. Raises `MeasurementError` if there is none."""
    at = 0
    for index, argument in enumerate(call.arguments):
        inside = argument if isinstance(argument, tuple) else (argument,)
        for position, item in enumerate(inside):
            if not isinstance(item, TensorSpec):
                continue
            if item == made and at not in call.parameters:
                return (index, position) if isinstance(argument, tuple) else (index, None)
            at += 1
    raise MeasurementError(f"{call.op} has no input of shape {made.shape}")
