"""Movements as ATen calls: copies whose strides define the movement, joins, padding, filling."""

from collections.abc import Callable
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._aten import calls
from opmark.kinds._shared.movement import Movement

_FILLS = frozenset(
    {"full", "zeros", "ones", "new_ones", "new_zeros", "new_full", "full_like", "zeros_like", "ones_like",
     "scalar_tensor", "fill_", "zero_"}
)  # fmt: skip


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Movement`, or None where a form is not covered."""
    return _READERS[calls.operator(call)](call)


def write(p: Movement) -> AtenCall | None:
    """The call, or None where torch has no such operation."""
    writer = _WRITERS.get(p.op)
    return writer(p) if writer is not None else None


def _copy(call: AtenCall) -> dict[str, Any] | None:
    """A copy into new contiguous memory; the source's strides define the movement."""
    # `copy_` has its destination first.
    at = 1 if calls.operator(call) == "copy_" else 0
    x, found = calls.tensor(call, at), calls.stride(call, at)
    if x is None:
        return None
    result = call.outputs[0]
    to = result.dtype if result.dtype != x.dtype else ""
    if to:
        return {"op": "cast", "shapes": (x.shape,), "to": to, "dtype": x.dtype}
    if found is None:
        return {"op": "copy", "shapes": (x.shape,), "dtype": x.dtype}
    if 0 in found:
        stored = tuple(1 if step == 0 else size for size, step in zip(x.shape, found, strict=True))
        return {"op": "expand", "shapes": (stored,), "arguments": x.shape, "dtype": x.dtype}
    # Axes of one element stand anywhere; keep them where they are seen.
    order = sorted(range(len(x.shape)), key=lambda axis: (-found[axis] if x.shape[axis] > 1 else 0, axis))
    order = _with_ones_in_place(x.shape, order)
    if order == list(range(len(order))):
        # Rows with gaps between them.
        return {"op": "copy", "shapes": (x.shape,), "dtype": x.dtype}
    return {
        "op": "transpose",
        "shapes": (tuple(x.shape[axis] for axis in order),),
        "arguments": tuple(order.index(axis) for axis in range(len(order))),
        "dtype": x.dtype,
    }


def _with_ones_in_place(shape: tuple[int, ...], order: list[int]) -> list[int]:
    wide = iter([axis for axis in order if shape[axis] > 1])
    return [axis if shape[axis] == 1 else next(wide) for axis in range(len(shape))]


def _split_heads(call: AtenCall) -> dict[str, Any] | None:
    """Queries, keys and values go to memory of their own, head by head; what is added on the way takes no time."""
    x, heads = calls.tensor(call, 0), int(calls.argument(call, 2, "num_heads", 1))
    if x is None:
        return None
    batch, length, width = x.shape
    shape = (batch, length, 3, heads, width // (3 * heads))
    return {"op": "transpose", "shapes": (shape,), "arguments": (2, 0, 3, 1, 4), "dtype": x.dtype}


def _join(call: AtenCall) -> dict[str, Any] | None:
    parts = tuple(item for item in call.arguments[0] if item.shape != (0,))
    if not parts:
        return None
    stack = calls.operator(call) == "stack"
    rank = len(parts[0].shape) + stack
    axis = int(calls.argument(call, 1, "dim", 0)) % rank
    return {
        "op": "stack" if stack else "concat",
        "shapes": tuple(item.shape for item in parts),
        "arguments": (axis,),
        "constant": tuple(index for index in range(len(parts)) if index in call.parameters),
        "dtype": call.outputs[0].dtype,
    }


def _pad(call: AtenCall) -> dict[str, Any] | None:
    x = calls.tensor(call, 0)
    if x is None:
        return None
    given, rank = call.arguments[1], len(x.shape)
    begins, ends = [0] * rank, [0] * rank
    # ATen counts from the last axis: begin, end, begin, end.
    for index in range(len(given) // 2):
        begins[rank - 1 - index], ends[rank - 1 - index] = int(given[2 * index]), int(given[2 * index + 1])
    return {"op": "pad", "shapes": (x.shape,), "arguments": (*begins, *ends), "mode": "constant", "dtype": x.dtype}


def _fill(call: AtenCall) -> dict[str, Any]:
    result = call.outputs[0]
    return {"op": "constant-of-shape", "shapes": (), "arguments": result.shape, "dtype": result.dtype}


def _range(call: AtenCall) -> dict[str, Any]:
    return _fill(call) | {"op": "range"}


def _with_arguments(op: str, *places: int) -> Callable[[AtenCall], dict[str, Any] | None]:
    def reader(call: AtenCall) -> dict[str, Any] | None:
        x = calls.tensor(call, 0)
        if x is None:
            return None
        rank = len(x.shape)
        numbers: list[int] = []
        for index in places:
            value = calls.argument(call, index, default=())
            numbers += [int(item) for item in (value if isinstance(value, tuple) else (value,))]
        if op in {"roll", "flip"}:
            shifts = len(numbers) // 2 if op == "roll" else 0
            numbers = [*numbers[:shifts], *(axis % rank for axis in numbers[shifts:])]
        if op == "tile" and len(numbers) != rank:
            return None
        return {"op": op, "shapes": (x.shape,), "arguments": tuple(numbers), "dtype": x.dtype}

    return reader


def _triangle(call: AtenCall) -> dict[str, Any] | None:
    x = calls.tensor(call, 0)
    if x is None:
        return None
    upper = int(calls.operator(call) == "triu")
    return {
        "op": "trilu",
        "shapes": (x.shape,),
        "arguments": (upper, int(calls.argument(call, 1, "diagonal", 0))),
        "dtype": x.dtype,
    }


def _shuffle(call: AtenCall) -> dict[str, Any] | None:
    op = "depth-to-space" if calls.operator(call) == "pixel_shuffle" else "space-to-depth"
    found = _with_arguments(op, 1)(call)
    return None if found is None or len(found["shapes"][0]) != 4 else found | {"mode": "CRD"}


_READERS: dict[str, Callable[[AtenCall], dict[str, Any] | None]] = {
    "clone": _copy,
    "contiguous": _copy,
    "_to_copy": _copy,
    "copy_": _copy,
    "_transform_bias_rescale_qkv": _split_heads,
    "cat": _join,
    "stack": _join,
    "constant_pad_nd": _pad,
    "arange": _range,
    "roll": _with_arguments("roll", 1, 2),
    "flip": _with_arguments("flip", 1),
    "repeat": _with_arguments("tile", 1),
    "tril": _triangle,
    "triu": _triangle,
    "pixel_shuffle": _shuffle,
    "pixel_unshuffle": _shuffle,
    **dict.fromkeys(_FILLS, _fill),
}
NAMES = frozenset(_READERS)


def _source(p: Movement, index: int = 0) -> TensorSpec:
    return TensorSpec(p.shapes[index], p.dtype)


def _write_transpose(p: Movement) -> AtenCall:
    result = p.outputs[0]
    stored = calls.dense(p.shapes[0])
    strides = tuple(stored[axis] for axis in p.arguments)
    return calls.build(
        "clone", result, memory_format="contiguous_format", outputs=[result], strides=(strides,), weights=p.constant
    )


def _write_expand(p: Movement) -> AtenCall:
    result, shape = p.outputs[0], p.shapes[0]
    padded = (1,) * (len(result.shape) - len(shape)) + shape
    steps = calls.dense(padded)
    strides = tuple(
        0 if have == 1 < want else step for have, want, step in zip(padded, result.shape, steps, strict=True)
    )
    return calls.build(
        "clone", result, memory_format="contiguous_format", outputs=[result], strides=(strides,), weights=p.constant
    )


def _write_copy(p: Movement) -> AtenCall:
    return calls.build("clone", _source(p), outputs=p.outputs, weights=p.constant)


def _write_cast(p: Movement) -> AtenCall:
    return calls.build("_to_copy", _source(p), dtype=p.to, outputs=p.outputs, weights=p.constant)


def _write_join(p: Movement) -> AtenCall:
    parts = tuple(_source(p, index) for index in range(len(p.shapes)))
    name = "stack" if p.op == "stack" else "cat"
    return calls.build(name, parts, p.arguments[0], outputs=p.outputs, weights=p.constant)


def _write_pad(p: Movement) -> AtenCall | None:
    if p.mode not in {"", "constant"}:
        return None
    rank = len(p.shapes[0])
    pairs = [number for axis in reversed(range(rank)) for number in (p.arguments[axis], p.arguments[rank + axis])]
    return calls.build("constant_pad_nd", _source(p), tuple(pairs), 0, outputs=p.outputs, weights=p.constant)


def _write_fill(p: Movement) -> AtenCall:
    return calls.build("full", p.arguments, 1, dtype=p.dtype, outputs=p.outputs)


def _write_range(p: Movement) -> AtenCall:
    return calls.build("arange", p.arguments[0] if p.arguments else 1, dtype=p.dtype, outputs=p.outputs)


def _write_roll(p: Movement) -> AtenCall:
    half = len(p.arguments) // 2
    return calls.build("roll", _source(p), p.arguments[:half], p.arguments[half:], outputs=p.outputs)


def _write_slice(p: Movement) -> AtenCall | None:
    """A contiguous copy of a slice; ATen's own slice is a view."""
    rank = len(p.shapes[0])
    steps = p.arguments[2 * rank :]
    if min(steps) < 1:
        return None
    result = p.outputs[0]
    strides = tuple(have * step for have, step in zip(calls.dense(p.shapes[0]), steps, strict=True))
    return calls.build("clone", result, memory_format="contiguous_format", outputs=[result], strides=(strides,))


def _write_tile(p: Movement) -> AtenCall:
    return calls.build("repeat", _source(p), p.arguments, outputs=p.outputs)


def _write_flip(p: Movement) -> AtenCall:
    return calls.build("flip", _source(p), p.arguments, outputs=p.outputs)


def _write_triangle(p: Movement) -> AtenCall:
    name = "triu" if p.arguments[0] else "tril"
    return calls.build(name, _source(p), p.arguments[1], outputs=p.outputs)


def _write_shuffle(p: Movement) -> AtenCall | None:
    if p.mode not in {"", "CRD"} and p.op == "depth-to-space":
        return None
    name = "pixel_shuffle" if p.op == "depth-to-space" else "pixel_unshuffle"
    return calls.build(name, _source(p), p.arguments[0], outputs=p.outputs)


_WRITERS: dict[str, Callable[[Any], AtenCall | None]] = {
    "transpose": _write_transpose,
    "expand": _write_expand,
    "copy": _write_copy,
    "cast": _write_cast,
    "concat": _write_join,
    "stack": _write_join,
    "pad": _write_pad,
    "constant-of-shape": _write_fill,
    "range": _write_range,
    "roll": _write_roll,
    "slice": _write_slice,
    "tile": _write_tile,
    "flip": _write_flip,
    "trilu": _write_triangle,
    "depth-to-space": _write_shuffle,
    "space-to-depth": _write_shuffle,
}
