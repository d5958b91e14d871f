"""Drawing movements as networks have them: split heads, joined branches, cut windows; and their relatives."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opmark.core.kernels.kind import Setting
from opmark.kinds._shared.movement import Movement
from opmark.kinds._shared.shapes import EIGHT_BITS, Shape, scaled, varied, varied_like

# Blocked layouts hold floating-point numbers, and no network counts in eight bits.
_WIDE_ONLY = {"reorder-input", "reorder-output", "range", "cast"}
_ONNX_ONLY = {"reorder-input", "reorder-output", "reshape", "squeeze", "unsqueeze", "range", "depth-to-space"}
_RESHAPING = {"cast", "reshape", "squeeze", "unsqueeze", "range", "depth-to-space"}


def draw(values: Mapping[str, Any], setting: Setting) -> dict[str, Any] | None:
    """The fields of a `Movement` without its element type, or None where the values do not fit together."""
    op, batch, channels, extent, parts = (values[name] for name in ("op", "batch", "channels", "extent", "parts"))
    if op in _ONNX_ONLY and setting.language != "onnx":
        return None
    if setting.dtype in EIGHT_BITS:
        if setting.language != "onnx" or op in _WIDE_ONLY:
            return None
        # Parts of a join rarely share a scale.
        op = "qlinear-concat" if op == "concat" else op
    shape = {
        "heads": (batch, extent, 8, max(4, channels // 8)),
        "image": (batch, channels, extent, extent),
        "sequence": (batch, extent, channels),
        "shuffle": (batch, parts, channels // parts, extent, extent),
    }[values["form"]]
    if op in {"slice", "split"} and setting.language == "aten":
        # ATen's slices and splits are views; a kernel that needs the part contiguous copies it.
        return {"op": "copy", "shapes": ((shape[0], max(1, shape[1] // parts), *shape[2:]),)}
    if op in _RESHAPING:
        return _reshaping(op, shape, values, setting)
    if op.startswith("reorder"):
        return _reordering(op, values, setting)
    return _moving(op, shape, values)


def _moving(op: str, shape: Shape, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Operations that copy elements to other places."""
    parts, rank, last = values["parts"], len(shape), len(shape) - 1
    match op:
        case "transpose":
            orders = {
                "heads": ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)),
                "image": ((0, 2, 3, 1), (0, 1, 3, 2), (0, 3, 1, 2)),
                "sequence": ((0, 2, 1), (1, 0, 2), (2, 0, 1)),
                "shuffle": ((0, 2, 1, 3, 4), (0, 1, 3, 2, 4), (0, 1, 3, 4, 2)),
            }
            return {"op": op, "shapes": (shape,), "arguments": orders[values["form"]][values["order"]]}
        case "concat" | "qlinear-concat":
            axis = 1 if values["form"] != "sequence" or values["order"] else last
            return {"op": op, "shapes": (shape,) * parts, "arguments": (axis,)}
        case "split":
            axis = 1 if values["form"] == "image" else last
            size = max(1, shape[axis] // parts)
            whole = (*shape[:axis], size * parts, *shape[axis + 1 :])
            return {"op": op, "shapes": (whole,), "arguments": (axis, *(size,) * parts)}
        case "slice":
            axis = (1, rank - 1, rank - 2)[values["order"]]
            size = max(1, shape[axis] // parts)
            starts = tuple(shape[axis] - size if a == axis else 0 for a in range(rank))
            return {"op": op, "shapes": (shape,), "arguments": (*starts, *shape, *(1,) * rank)}
        case "pad":
            if rank != 4:
                return None
            sides = (0, 0, parts - 1, parts - 1)
            return {"op": op, "shapes": (shape,), "arguments": (*sides, *sides), "mode": "constant"}
        case "expand":
            axis = values["order"]
            small = tuple(1 if a == axis else n for a, n in enumerate(shape))
            result = tuple(max(2, n) if a == axis else n for a, n in enumerate(shape))
            return {"op": op, "shapes": (small,), "arguments": result}
        case "tile":
            return {"op": op, "shapes": (shape,), "arguments": tuple(parts if a == 1 else 1 for a in range(rank))}
    return None


def _reshaping(op: str, shape: Shape, values: Mapping[str, Any], setting: Setting) -> dict[str, Any] | None:
    """Operations that keep the elements' order or make new elements."""
    rank = len(shape)
    match op:
        case "cast":
            return None if values["to"] == setting.dtype else {"op": op, "shapes": (shape,), "to": values["to"]}
        case "reshape":
            return {"op": op, "shapes": (shape,), "arguments": (*shape[:-2], shape[-2] * shape[-1])}
        case "squeeze":
            return {"op": op, "shapes": ((*shape, 1),), "arguments": (rank,)}
        case "unsqueeze":
            return {"op": op, "shapes": (shape,), "arguments": (1,)}
        case "range":
            return {"op": op, "shapes": (), "arguments": (values["channels"] * values["parts"],)}
        case "depth-to-space":
            image = (shape[0], values["channels"] // 4 * 4, *(values["extent"],) * 2)
            return {"op": op, "shapes": (image,), "arguments": (2,), "mode": "DCR"} if rank == 4 else None
    return None


def _reordering(op: str, values: Mapping[str, Any], setting: Setting) -> dict[str, Any] | None:
    """Reorders of an image to and from the blocked layout."""
    if not setting.block or values["form"] != "image":
        return None
    channels = max(setting.block, values["channels"] // setting.block * setting.block)
    blocked = (values["batch"], channels, values["extent"], values["extent"])
    arguments = (0,) if op == "reorder-input" else (blocked[1], 0)
    return {"op": op, "shapes": (blocked,), "arguments": arguments, "block": setting.block}


def relative(p: Movement, width: float, extent: float) -> Movement:
    """`p` with channels scaled by `width` and other sizes by `extent`, as far as its operation allows."""
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
