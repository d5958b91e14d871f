"""Tensors for ATen calls, with the requested strides, values in a normal range and valid indices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import DTYPE_BYTES, TensorSpec

if TYPE_CHECKING:
    import torch

_WORDS = frozenset({"dtype", "memory_format", "layout"})
# Numbers that are drawn and then repeated.
_DRAWN = 1 << 16
# Made of their own results, these soon give infinities or no numbers, which take them up to seven times as long.
_LEAVES_RANGE = frozenset({"exp", "log"})
# Comparing takes longer the less the processor can foresee, so these read what they read in networks.
_COMPARES = ("max_pool2d", "adaptive_max_pool2d")
# Pixels of an image that are drawn and then repeated: a processor learns a few thousand comparisons by heart.
_PIXELS = 1 << 21
_MAXIMA = ("max_pool2d_with_indices_backward", "adaptive_max_pool2d_backward")


def chain_argument(call: AtenCall) -> int | None:
    """The index of an argument that the result can replace: a contiguous activation of its shape and type, or None.

    None too where a repeated call leaves the range of usual numbers, and gets slower by it.
    """
    if not call.outputs or call.op.partition(".")[0] in _LEAVES_RANGE:
        return None
    at = 0
    for index, argument in enumerate(call.arguments):
        plain = at >= len(call.strides) or call.strides[at] is None
        if argument == call.outputs[0] and plain and at not in call.parameters and not _is_index(call, index):
            return index
        at += _count(argument)
    return None


def operands(
    call: AtenCall, *, copies: int, rotated: bool, device: str = "cpu"
) -> list[tuple[list[Any], dict[str, Any]]]:
    """The arguments of every copy on `device`, each with its own weights and, if `rotated`, its own activations."""
    import torch

    generator = torch.Generator(device).manual_seed(0)
    first = [_first(call, at, spec, generator) for at, spec in enumerate(call.tensors)]
    result = []
    for copy in range(copies):
        tensors = [
            _copied(tensor) if copy and (rotated or at in call.parameters) else tensor
            for at, tensor in enumerate(first)
        ]
        supply = iter(tensors)
        positional = [_element_type(_placed(argument, supply)) for argument in call.arguments]
        keywords = {name: _word(name, _placed(item, supply)) for name, item in call.keywords.items()}
        result.append((positional, keywords))
    return result


def _first(call: AtenCall, at: int, spec: TensorSpec, generator: "torch.Generator") -> "torch.Tensor":
    if call.op.startswith(_MAXIMA):
        if spec.dtype == "int64":
            return _maxima(call, spec).to(generator.device)
    elif call.op.startswith(_COMPARES) and at == 0 and len(spec.shape) == 4 and spec.elements:
        return _rectified_images(spec, _stride(call, at), generator)
    return _filled(spec, _stride(call, at), _limit(call, at), generator)


def _rectified_images(spec: TensorSpec, stride: tuple[int, ...] | None, generator: "torch.Generator") -> "torch.Tensor":
    """Noise averaged over three by three pixels, without its negative half, as behind a convolution and a ReLU."""
    import torch
    from torch.nn import functional

    images, channels, height, width = spec.shape
    planes = min(images * channels, max(1, _PIXELS // (height * width)))
    noise = torch.randn((planes, 1, height, width), generator=generator, device=generator.device)
    drawn = functional.avg_pool2d(noise, 3, stride=1, padding=1).relu_().to(getattr(torch, spec.dtype))
    repeats = -(-images * channels // planes)
    whole = drawn.repeat(repeats, 1, 1, 1)[: images * channels].view(spec.shape)
    if stride is None:
        return whole
    memory = torch.empty(_extent(spec, stride), dtype=whole.dtype, device=generator.device)
    return memory.as_strided(spec.shape, stride).copy_(whole)


def _extent(spec: TensorSpec, stride: tuple[int, ...] | None) -> int:
    """The elements of memory from the first to the last of the tensor."""
    if stride is None or not spec.elements:
        return spec.elements
    return 1 + sum((extent - 1) * step for extent, step in zip(spec.shape, stride, strict=True))


def _filled(
    spec: TensorSpec, stride: tuple[int, ...] | None, limit: int | None, generator: "torch.Generator"
) -> "torch.Tensor":
    import torch

    dtype = getattr(torch, spec.dtype)
    size = _extent(spec, stride)
    memory = torch.empty(size, dtype=dtype, device=generator.device)
    if dtype.is_floating_point:
        # Positive, so that roots and logarithms are numbers; near one, so that products stay in range. Drawing every
        # number takes longer than all other preparation together.
        memory[:_DRAWN].uniform_(0.5, 1.5, generator=generator)
        filled = _DRAWN
        # Twice as many each time: a GPU takes as long to start a copy as to make one.
        while filled < size:
            memory[filled : 2 * filled].copy_(memory[: min(filled, size - filled)])
            filled *= 2
    elif dtype is torch.bool:
        memory.random_(0, 2, generator=generator)
    elif not dtype.is_complex:
        memory.random_(0 if limit else 1, limit or 3, generator=generator)
    return memory.view(spec.shape) if stride is None else memory.as_strided(spec.shape, stride)


def _maxima(call: AtenCall, spec: TensorSpec) -> "torch.Tensor":
    """The index of each maximum in its plane: inside its own window, as after a forward pass."""
    import torch

    generator = torch.Generator().manual_seed(0)
    places = torch.zeros(spec.shape[2:], dtype=torch.int64)
    size = call.tensors[1].shape[2:]
    for axis, (extent, positions) in enumerate(zip(size, spec.shape[2:], strict=True)):
        first = torch.arange(positions) * extent // positions
        offset = torch.randint(max(1, extent // positions), spec.shape[2:], generator=generator)
        along = (first[:, None] if axis == 0 else first[None, :]) + offset
        places = places * extent + along.clamp(max=extent - 1)
    return places.expand(spec.shape).contiguous()


def _copied(tensor: "torch.Tensor") -> "torch.Tensor":
    """The same numbers with the same strides in other memory."""
    import torch

    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    memory = torch.empty(size, dtype=tensor.dtype, device=tensor.device)
    memory.copy_(tensor.as_strided((size,), (1,)))
    return memory.as_strided(tensor.shape, tensor.stride())


def _limit(call: AtenCall, at: int) -> int | None:
    """The number of valid indices of tensor `at`; None if the tensor is no index."""
    name, tensors = call.op.partition(".")[0], call.tensors
    if at == 0 or "int" not in tensors[at].dtype:
        return None
    match name:
        case "embedding":
            return tensors[0].shape[0]
        case "embedding_dense_backward":
            return int(call.arguments[2])
        case "nll_loss_forward" | "nll_loss2d_forward":
            return tensors[0].shape[1]
        case "nll_loss_backward" | "nll_loss2d_backward":
            return tensors[1].shape[1]
        case "index_select" | "gather" | "scatter" | "index_add" | "index_add_" | "scatter_add" | "scatter_add_":
            return tensors[0].shape[int(call.arguments[1])]
        case "index" | "index_put" | "index_put_":
            given = [axis for axis, item in enumerate(call.arguments[1]) if isinstance(item, TensorSpec)]
            return tensors[0].shape[given[at - 1]]
    return None


def _is_index(call: AtenCall, index: int) -> bool:
    at = sum(_count(item) for item in call.arguments[:index])
    return isinstance(call.arguments[index], TensorSpec) and _limit(call, at) is not None


def _stride(call: AtenCall, at: int) -> tuple[int, ...] | None:
    return call.strides[at] if at < len(call.strides) else None


def _placed(value: Any, supply: Any) -> Any:
    if isinstance(value, TensorSpec):
        return next(supply)
    return [_placed(item, supply) for item in value] if isinstance(value, (tuple, list)) else value


def _word(name: str, value: Any) -> Any:
    import torch

    return getattr(torch, value) if name in _WORDS and isinstance(value, str) else value


def _element_type(value: Any) -> Any:
    import torch

    return getattr(torch, value) if isinstance(value, str) and value in DTYPE_BYTES else value


def _count(value: Any) -> int:
    if isinstance(value, TensorSpec):
        return 1
    return sum(_count(item) for item in value) if isinstance(value, Sequence) and not isinstance(value, str) else 0
