"""Drawing movements as networks make them: splitting heads, joining branches, cutting windows."""

from collections.abc import Mapping
from typing import Any

from opmark.core.kind import Setting
from opmark.kinds._onnx.quantised import EIGHT_BITS

# Blocked layouts are of floating numbers, and nobody counts in eight bits.
_WIDE_ONLY = {"reorder-input", "reorder-output", "range", "cast"}
_ONNX_ONLY = {"reorder-input", "reorder-output", "reshape", "squeeze", "unsqueeze", "range", "depth-to-space"}


def draw(values: Mapping[str, Any], setting: Setting) -> dict[str, Any] | None:
    """The fields of a `Movement`, its element type aside, or None where the point makes no sense."""
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
    rank = len(shape)
    last = rank - 1
    if op in {"slice", "split"} and setting.language == "aten":
        # There both are views; what copies is whoever needs the part contiguous.
        return {"op": "copy", "shapes": ((shape[0], max(1, shape[1] // parts), *shape[2:]),)}
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
        case "cast":
            return None if values["to"] == setting.dtype else {"op": op, "shapes": (shape,), "to": values["to"]}
        case "reshape":
            return {"op": op, "shapes": (shape,), "arguments": (*shape[:-2], shape[-2] * shape[-1])}
        case "squeeze":
            return {"op": op, "shapes": ((*shape, 1),), "arguments": (rank,)}
        case "unsqueeze":
            return {"op": op, "shapes": (shape,), "arguments": (1,)}
        case "range":
            return {"op": op, "shapes": (), "arguments": (channels * parts,)}
        case "depth-to-space":
            image = (batch, channels // 4 * 4, extent, extent)
            return {"op": op, "shapes": (image,), "arguments": (2,), "mode": "DCR"} if rank == 4 else None
    if not setting.block or values["form"] != "image":
        return None
    blocked = (batch, max(setting.block, channels // setting.block * setting.block), extent, extent)
    arguments = (0,) if op == "reorder-input" else (blocked[1], 0)
    return {"op": op, "shapes": (blocked,), "arguments": arguments, "block": setting.block}
