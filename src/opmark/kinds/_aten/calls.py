"""Reading and building ATen calls."""

from collections.abc import Sequence
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import TensorSpec

Strides = tuple[int, ...]


def operator(call: AtenCall) -> str:
    """The call's name without its overload."""
    return call.op.partition(".")[0]


def overload(call: AtenCall) -> str:
    """The call's overload."""
    return call.op.partition(".")[2]


def argument(call: AtenCall, index: int, name: str = "", default: Any = None) -> Any:
    """The argument at `index`, or given by `name`, or the default."""
    if index < len(call.arguments):
        return call.arguments[index]
    return call.keywords.get(name, default)


def tensor(call: AtenCall, index: int, name: str = "") -> TensorSpec | None:
    """The tensor at `index`, or given by `name`, or None."""
    found = argument(call, index, name)
    return found if isinstance(found, TensorSpec) else None


def keyword_tensor(call: AtenCall, name: str) -> TensorSpec | None:
    """The tensor given by keyword, None where there is none."""
    found = call.keywords.get(name)
    return found if isinstance(found, TensorSpec) else None


def place(call: AtenCall, index: int) -> int:
    """The place among the call's tensors of the one at argument `index`."""
    return sum(_count(item) for item in call.arguments[:index])


def stride(call: AtenCall, index: int) -> Strides | None:
    """The strides of the tensor at argument `index`, None where it is contiguous."""
    at = place(call, index)
    return call.strides[at] if at < len(call.strides) else None


def is_weight(call: AtenCall, index: int) -> bool:
    """True if the tensor at argument `index` is a parameter of the network."""
    return place(call, index) in call.parameters


def each(value: Any, axes: int) -> tuple[int, ...]:
    """One number per axis: ATen lets a list of one stand for all."""
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return tuple(int(number) for number in (numbers * axes if len(numbers) == 1 else numbers))


def transposed(found: Strides | None) -> bool:
    """True if the last two axes of a tensor with these strides are stored swapped."""
    return found is not None and len(found) > 1 and found[-2] == 1 and found[-1] != 1


def dense(shape: Sequence[int]) -> Strides:
    """Strides of a contiguous tensor."""
    result: list[int] = []
    step = 1
    for size in reversed(shape):
        result.append(step)
        step *= max(1, size)
    return tuple(reversed(result))


def permuted(shape: Sequence[int], order: Sequence[int]) -> Strides:
    """Strides of a tensor of `shape` whose axes are stored in `order`, outermost first."""
    stored = dense([shape[axis] for axis in order])
    return tuple(stored[list(order).index(axis)] for axis in range(len(shape)))


def swapped(shape: Sequence[int]) -> Strides:
    """Strides of a tensor of `shape` whose last two axes are stored swapped."""
    axes = list(range(len(shape)))
    return permuted(shape, (*axes[:-2], axes[-1], axes[-2]))


def channels_last(shape: Sequence[int]) -> Strides:
    """Strides of an image of `shape` (batch and channels first) that is stored channels last."""
    return permuted(shape, (0, *range(2, len(shape)), 1))


def build(
    op: str,
    *arguments: Any,
    outputs: Sequence[TensorSpec],
    weights: Sequence[int] = (),
    strides: Sequence[Strides | None] = (),
    **keywords: Any,
) -> AtenCall:
    """The call; `weights` are places among its tensors, `strides` one per tensor (none: all contiguous)."""
    return AtenCall(
        op=op if "." in op else f"{op}.default",
        arguments=arguments,
        keywords=keywords,
        outputs=tuple(outputs),
        strides=tuple(strides),
        parameters=tuple(weights),
    )


def _count(value: Any) -> int:
    if isinstance(value, TensorSpec):
        return 1
    return sum(_count(item) for item in value) if isinstance(value, (tuple, list)) else 0
