"""Kernels that only bring elements elsewhere: transposes, joins, cuts, copies, casts, layout reorders, views."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall, OnnxNode
from opmark.core.kind import FLOATING, Choice, Kind, Range, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import movement as _movement_aten
from opmark.kinds._onnx import movement as _movement_onnx
from opmark.kinds._onnx.quantised import EIGHT_BITS
from opmark.kinds._shared import movement as _movement_draw
from opmark.kinds._shared.shapes import Shape, code, scaled, size_bytes, varied, varied_like, without_channels

# What `arguments` holds, per operation. Append only: a learner's category codes are the places in this list.
ARGUMENTS = {
    "transpose": "the permutation",
    "concat": "the axis",
    "split": "the axis, then the sizes",
    "slice": "all starts, all ends, all steps",
    "pad": "all begins, then all ends",
    "expand": "the result's shape",
    "tile": "the repeats",
    "cast": "nothing; `to` is the new type",
    "reshape": "the result's shape",
    "flatten": "the axis",
    "squeeze": "the axes",
    "unsqueeze": "the axes",
    "identity": "nothing",
    "reorder-input": "1 if channels come last, else 0",
    "reorder-output": "the channels to keep, then 1 if channels go last, else 0",
    "depth-to-space": "the block size",
    "space-to-depth": "the block size",
    "constant-of-shape": "the shape",
    "range": "the length",
    "shape": "nothing",
    "trilu": "1 for the upper triangle, then the diagonal",
    "copy": "nothing",
    "stack": "the axis",
    "roll": "the shifts, then the axes",
    "flip": "the axes",
    "qlinear-concat": "the axis; every part is brought to the result's scale",
}
OPERATIONS = tuple(ARGUMENTS)
# The result is the input's own memory, or needs no input at all.
VIEWS = frozenset({"reshape", "flatten", "squeeze", "unsqueeze", "identity", "shape"})
_MOST_BYTES = 128 * 2**20
# Elements from which on copying a run costs less than going to the next one.
_LONG_RUN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """`shapes` of the inputs; `arguments` as `ARGUMENTS` says; `constant` are the places of constant inputs.

    `mode` is a padding mode or the element order of depth-to-space; `block` the width of the blocked channel layout
    that is reordered to or from.
    """

    op: str
    shapes: tuple[Shape, ...]
    arguments: tuple[int, ...] = ()
    constant: tuple[int, ...] = ()
    to: str = ""
    mode: str = ""
    block: int = 0
    dtype: str = "float32"

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Every result."""
        if self.op == "split":
            axis, *sizes = self.arguments
            shape = self.shapes[0]
            return tuple(TensorSpec((*shape[:axis], size, *shape[axis + 1 :]), self.dtype) for size in sizes)
        if self.op == "shape":
            return (TensorSpec((len(self.shapes[0]),), "int64"),)
        return (TensorSpec(_result(self), self.to or self.dtype),)


class MovementKind(Kind[Movement]):
    """Movement."""

    name = "movement"
    parameters = Movement
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = _movement_onnx.NAMES
    aten_ops = _movement_aten.NAMES
    space = {
        "op": Choice(
            ("transpose", "transpose", "transpose", "concat", "concat", "split", "slice", "pad", "expand", "cast",
             "reshape", "tile", "reorder-input", "reorder-output", "squeeze", "unsqueeze", "range", "depth-to-space")
        ),
        "form": Choice(("heads", "image", "sequence", "shuffle")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 2048, 8),
        "extent": Range(2, 256),
        "parts": Choice((2, 2, 3, 4)),
        "order": Choice((0, 1, 2)),
        "to": Choice(("float16", "int64", "bool", "float64", "int32")),
    }  # fmt: skip

    def work(self, p: Movement) -> Work:
        if p.op in VIEWS:
            return Work(flops=0, read_bytes=0, written_bytes=0)
        written = sum(spec.size_bytes for spec in p.outputs)
        sizes = [size_bytes(shape, p.dtype) for shape in p.shapes]
        # A slice, or anything that drops elements, only has to touch what it keeps.
        whole = p.op in {"expand", "tile", "cast"} or sum(sizes) <= written
        read = sum(sizes) if whole else written
        return Work(
            flops=0,
            read_bytes=read,
            written_bytes=written,
            weight_bytes=sum(sizes[place] for place in p.constant) if whole else 0,
        )

    def features(self, p: Movement) -> dict[str, float]:
        work = self.work(p)
        first = p.shapes[0] if p.shapes else p.outputs[0].shape
        moved = sum(spec.elements for spec in p.outputs)
        run, outer = _run(p)
        return {
            "op": code(p.op, OPERATIONS),
            "inputs": len(p.shapes),
            "outputs": len(p.outputs),
            "elements": moved,
            "rank": len(first),
            "last": first[-1] if first else 1,
            # Elements that stay neighbours, and how many such runs there are.
            "run": run,
            "runs": outer,
            "constants": len(p.constant),
            "item_ratio": work.written_bytes / max(1, work.read_bytes),
            "block": p.block,
        }

    def details(self, p: Movement) -> dict[str, float]:
        apart, written, axes, moves = 1, 1, 1, 0
        if p.op == "transpose":
            merged, order = squeezed(p.shapes[0], p.arguments)
            axes, moves = len(merged), moved_axes(order)
            if axes > 1:
                written = merged[order[-1]]
                apart = math.prod(merged[order[-1] + 1 :])
        return {
            # Of a transpose: how far apart in the input the result's neighbours lie, and how many stand in a row.
            "log_apart": math.log(apart),
            "log_written_run": math.log(max(1, written)),
            "axes": float(axes),
            "moves": float(moves),
            "long_run": float(_run(p)[0] >= _LONG_RUN),
        }

    def shape_group(self, p: Movement) -> str:
        first = p.shapes[0] if p.shapes else p.outputs[0].shape
        arguments = p.arguments if p.op in {"transpose", "concat", "qlinear-concat", "tile"} else ()
        return f"{p.op}-{arguments}-{without_channels(first)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Movement | None:
        drawn = _movement_draw.draw(values, setting)
        if drawn is None:
            return None
        dtype = "uint8" if setting.dtype in EIGHT_BITS else setting.dtype
        p = Movement(**drawn, dtype=dtype)
        return p if self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: Movement, width: float, extent: float) -> Movement:
        return p if width == extent == 1 else _varied(p, width, extent)

    def from_onnx(self, node: OnnxNode) -> Movement | None:
        found = _movement_onnx.read(node)
        return None if found is None else Movement(**found)

    def to_onnx(self, p: Movement) -> OnnxNode | None:
        return _movement_onnx.write(
            p.op, p.shapes, p.arguments, p.outputs, constant_at=p.constant, mode=p.mode, block=p.block, dtype=p.dtype
        )

    def from_aten(self, call: AtenCall) -> Movement | None:
        found = _movement_aten.read(call)
        return None if found is None else Movement(**found)

    def to_aten(self, p: Movement) -> AtenCall | None:
        return _movement_aten.write(p)


def _result(p: Movement) -> Shape:
    shape, arguments = (p.shapes[0] if p.shapes else ()), p.arguments
    rank = len(shape)
    match p.op:
        case "transpose":
            return tuple(shape[axis] for axis in arguments)
        case "concat" | "qlinear-concat":
            axis = arguments[0]
            return (*shape[:axis], sum(other[axis] for other in p.shapes), *shape[axis + 1 :])
        case "stack":
            axis = arguments[0]
            return (*shape[:axis], len(p.shapes), *shape[axis:])
        case "slice":
            starts, ends, steps = arguments[:rank], arguments[rank : 2 * rank], arguments[2 * rank :]
            return tuple(len(range(*item)) for item in zip(starts, ends, steps, strict=True))
        case "pad":
            return tuple(n + arguments[axis] + arguments[rank + axis] for axis, n in enumerate(shape))
        case "expand" | "reshape" | "constant-of-shape" | "range":
            return arguments
        case "tile":
            return tuple(n * repeat for n, repeat in zip(shape, arguments, strict=True))
        case "flatten":
            return (math.prod(shape[: arguments[0]]), math.prod(shape[arguments[0] :]))
        case "squeeze":
            return tuple(n for axis, n in enumerate(shape) if axis not in arguments)
        case "unsqueeze":
            rest = iter(shape)
            return tuple(1 if axis in arguments else next(rest) for axis in range(rank + len(arguments)))
        case "reorder-input":
            batch, *size = shape
            channels = size.pop() if arguments[0] else size.pop(0)
            return (batch, -(-channels // p.block) * p.block, *size)
        case "reorder-output":
            batch, _, *size = shape
            return (batch, *size, arguments[0]) if arguments[1] else (batch, arguments[0], *size)
        case "depth-to-space":
            b = arguments[0]
            return (shape[0], shape[1] // b**2, shape[2] * b, shape[3] * b)
        case "space-to-depth":
            b = arguments[0]
            return (shape[0], shape[1] * b**2, shape[2] // b, shape[3] // b)
    return shape


def squeezed(shape: Shape, order: Shape) -> tuple[Shape, Shape]:
    """A transpose without axes of one element, axes that stay together taken for one: its shape and permutation."""
    kept = [axis for axis in order if shape[axis] != 1]
    sources = sorted(kept)
    blocks: list[list[int]] = []
    for axis in kept:
        if blocks and sources.index(axis) == sources.index(blocks[-1][-1]) + 1:
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    firsts = sorted(block[0] for block in blocks)
    sizes = {block[0]: math.prod(shape[axis] for axis in block) for block in blocks}
    return tuple(sizes[first] for first in firsts), tuple(firsts.index(block[0]) for block in blocks)


def moved_axes(order: Shape) -> int:
    """0 where nothing moves, 1 where one axis passes over others, 2 where more do."""
    if list(order) == sorted(order):
        return 0
    singly = any(sorted(rest) == rest for rest in ([a for a in order if a != axis] for axis in order))
    return 1 if singly else 2


def _run(p: Movement) -> tuple[float, float]:
    """Length and number of the runs of neighbouring elements that are copied together."""
    shape = p.shapes[0] if p.shapes else p.outputs[0].shape
    total = sum(spec.elements for spec in p.outputs)
    axis = 0
    if p.op == "transpose":
        shape, order = squeezed(shape, p.arguments)
        axis = len(shape)
        while axis > 0 and order[axis - 1] == axis - 1:
            axis -= 1
    elif p.op in {"concat", "qlinear-concat", "split"}:
        # a piece of every part in turn
        outer = math.prod(shape[: p.arguments[0]]) * max(len(p.shapes), len(p.outputs))
        return total / max(1, outer), float(outer)
    elif p.op in {"slice", "pad", "expand", "tile"}:
        changed = [n != m for n, m in zip(reversed(shape), reversed(_result(p)), strict=False)]
        axis = len(shape) - changed.index(True) - 1 if True in changed else 0
    elif p.op.startswith("reorder"):
        axis = 2 if p.op == "reorder-output" or not p.arguments[0] else len(shape) - 1
    run = math.prod(shape[axis:])
    return float(run), total / max(1, run)


def _varied(p: Movement, width: float, extent: float) -> Movement:
    if p.op in {"constant-of-shape", "range"}:
        return replace(p, arguments=varied(p.arguments, width, extent))
    before = p.shapes[0]
    after = varied(before, width, extent)
    rank = len(before)
    match p.op:
        case "concat" | "qlinear-concat" | "stack":
            return replace(p, shapes=tuple(varied(shape, width, extent) for shape in p.shapes))
        case "split":
            axis, *sizes = p.arguments
            parts = [scaled(size, after[axis] / before[axis]) for size in sizes]
            return replace(p, shapes=((*after[:axis], sum(parts), *after[axis + 1 :]),), arguments=(axis, *parts))
        case "slice":
            spans = [
                _span(n, m, *(p.arguments[rank * part + axis] for part in range(3)))
                for axis, (n, m) in enumerate(zip(before, after, strict=True))
            ]
            return replace(p, shapes=(after,), arguments=tuple(span[part] for part in range(3) for span in spans))
        case "expand":
            result = varied(p.arguments, width, extent)
            return replace(p, shapes=(varied_like(before, p.arguments, result),), arguments=result)
        case "reshape":
            result = varied(p.arguments, width, extent)
            fits = math.prod(result) == math.prod(after)
            return replace(p, shapes=(after,), arguments=result if fits else (math.prod(after),))
        case "reorder-input" | "reorder-output":
            last = p.op == "reorder-input" and p.arguments[0]
            channels = scaled(before[-1] if last else before[1], width, p.block)
            size = varied((1, 2, *(before[1:-1] if last else before[2:])), 1, extent)[2:]
            shape = (before[0], *size, channels) if last else (before[0], channels, *size)
            arguments = (channels, p.arguments[1]) if p.op == "reorder-output" else p.arguments
            return replace(p, shapes=(shape,), arguments=arguments)
        case "depth-to-space":
            return replace(p, shapes=((before[0], scaled(before[1], width, p.arguments[0] ** 2), *after[2:]),))
        case "space-to-depth":
            b = p.arguments[0]
            return replace(p, shapes=((*after[:2], *(scaled(n, extent, b) for n in before[2:])),))
    return replace(p, shapes=(after, *p.shapes[1:]))


def _span(before: int, after: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    if before == after:
        return start, end, step
    if step < 0:
        return after - 1, -1, step
    first = min(after - 1, start * after // before)
    return first, max(first + 1, min(after, round(end * after / before))), step


KIND = MovementKind()
