"""The parameters of a movement, and their geometry: result shapes, and runs of elements copied together."""

import math
from dataclasses import dataclass

from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._shared.shapes import Shape

# The meaning of `arguments`, by operation. Append only: a learner's category codes are the places in this list.
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
# The result shares the input's memory, or needs no input.
VIEWS = frozenset({"reshape", "flatten", "squeeze", "unsqueeze", "identity", "shape"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """`shapes` are those of the inputs; `ARGUMENTS` explains `arguments`; `constant` holds the places of constants.

    `mode` is a padding mode or the element order of depth-to-space; `block` is the width of the blocked channel layout
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
    """Shape and permutation of a transpose without axes of one element, with neighbours that stay together merged."""
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


def copied_runs(p: Movement) -> tuple[float, float]:
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
