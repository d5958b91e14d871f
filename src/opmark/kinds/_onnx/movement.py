"""Movements as ONNX nodes: many operators, each with attributes of its own."""

from collections.abc import Callable
from typing import Any

from opmark.core.kernels.call import OnnxNode, Operand
from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._onnx.nodes import (
    DTYPES,
    MICROSOFT,
    NCHWC,
    build,
    constant,
    data,
    elements,
    qualified,
    weight,
    whole,
)
from opmark.kinds._onnx.quantised import interleaved, quantisation, spread
from opmark.kinds._shared.movement import Movement
from opmark.kinds._shared.shapes import Shape

_NAMES = {
    "transpose": "Transpose",
    "concat": "Concat",
    "qlinear-concat": f"{MICROSOFT}:QLinearConcat",
    "split": "Split",
    "slice": "Slice",
    "pad": "Pad",
    "expand": "Expand",
    "tile": "Tile",
    "cast": "Cast",
    "reshape": "Reshape",
    "flatten": "Flatten",
    "squeeze": "Squeeze",
    "unsqueeze": "Unsqueeze",
    "identity": "Identity",
    "reorder-input": f"{NCHWC}:ReorderInput",
    "reorder-output": f"{NCHWC}:ReorderOutput",
    "depth-to-space": "DepthToSpace",
    "space-to-depth": "SpaceToDepth",
    "constant-of-shape": "ConstantOfShape",
    "range": "Range",
    "shape": "Shape",
    "trilu": "Trilu",
}
_OPERATIONS = {name: op for op, name in _NAMES.items()} | {"Dropout": "identity"}
NAMES = frozenset(_OPERATIONS)
_TYPES = {dtype: number for number, dtype in DTYPES.items()}


def read(node: OnnxNode) -> dict[str, Any] | None:
    """The fields of a `Movement`, or None where a needed value is unknown."""
    op = _OPERATIONS[qualified(node)]
    result = node.outputs[0]
    if result is None or (node.op_type == "Dropout" and any(node.outputs[1:])):
        return None
    if op in {"constant-of-shape", "range"}:
        return {"op": op, "shapes": (), "arguments": result.shape, "dtype": result.dtype}
    operands = spread(node) if op == "qlinear-concat" else node.inputs if op == "concat" else node.inputs[:1]
    x = operands[0] if operands else None
    if x is None:
        return None
    found: dict[str, Any] = {"op": op, "shapes": (x.spec.shape,), "dtype": x.spec.dtype}
    reader = _READERS.get(op)
    more = reader(node, x.spec.shape, result) if reader else {}
    if more is None:
        return None
    places = tuple(place for place, operand in enumerate(operands) if operand is not None and operand.constant)
    return found | ({"constant": places} if places else {}) | more


def _concat(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    shapes = tuple(operand.spec.shape for operand in node.inputs if operand is not None)
    return {"shapes": shapes, "arguments": (int(node.attributes["axis"]) % len(shape),)}


def _qlinear_concat(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    shapes = tuple(operand.spec.shape for operand in spread(node))
    return {"shapes": shapes, "arguments": (int(node.attributes["axis"]) % len(shape),)}


def _split(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    axis = int(node.attributes.get("axis", 0)) % len(shape)
    return {"arguments": (axis, *(spec.shape[axis] for spec in node.outputs if spec is not None))}


def _slice(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    rank = len(shape)
    starts, ends = whole(node, "starts", 1), whole(node, "ends", 2)
    axes, steps = whole(node, "axes", 3), whole(node, "steps", 4)
    if starts is None or ends is None:
        # Computed at run time; where it starts does not change the time, its size is known.
        return {"arguments": (*(0 for _ in shape), *result.shape, *(1 for _ in shape))}
    spans = [(0, size, 1) for size in shape]
    for place, axis in enumerate(axes or range(len(starts))):
        step = steps[place] if steps else 1
        normal = axis % rank
        spans[normal] = slice(starts[place], ends[place], step).indices(shape[normal])
        if step < 0 and ends[place] < -shape[normal]:
            spans[normal] = (spans[normal][0], -1, step)
    return {"arguments": tuple(span[part] for part in range(3) for span in spans)}


def _pad(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    rank = len(shape)
    given, axes = whole(node, "pads", 1), whole(node, "axes", 3) or tuple(range(rank))
    pads = [0] * (2 * rank)
    if given is None:
        pads[rank:] = [m - n for n, m in zip(shape, result.shape, strict=True)]
    else:
        for place, axis in enumerate(axes):
            pads[axis % rank], pads[rank + axis % rank] = given[place], given[len(axes) + place]
    return {"arguments": tuple(pads), "mode": str(node.attributes.get("mode", "constant"))}


def _squeeze(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    axes = whole(node, "axes", 1)
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return {"arguments": tuple(sorted(axis % len(shape) for axis in axes))}


def _unsqueeze(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any] | None:
    del shape
    axes = whole(node, "axes", 1)
    return None if axes is None else {"arguments": tuple(sorted(axis % len(result.shape) for axis in axes))}


def _flatten(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    axis = int(node.attributes.get("axis", 1))
    return {"arguments": (axis + len(shape) if axis < 0 else axis,)}


def _reorder_input(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del shape, result
    return {"arguments": (int(node.attributes.get("channels_last", 0)),), "block": node.block}


def _reorder_output(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del shape, result
    channels, last = int(node.attributes["channels"]), int(node.attributes.get("channels_last", 0))
    return {"arguments": (channels, last), "block": node.block}


def _depth(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del shape, result
    mode = str(node.attributes.get("mode", "DCR")) if node.op_type == "DepthToSpace" else ""
    return {"arguments": (int(node.attributes["blocksize"]),), "mode": mode}


def _trilu(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del shape, result
    return {"arguments": (int(node.attributes.get("upper", 1)), int((elements(node, 1) or (0,))[0]))}


def _transpose(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del result
    return {"arguments": tuple(node.attributes.get("perm") or reversed(range(len(shape))))}


def _output(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del node, shape
    return {"arguments": result.shape}


def _tile(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del node
    return {"arguments": tuple(m // max(1, n) for n, m in zip(shape, result.shape, strict=True))}


def _cast(node: OnnxNode, shape: Shape, result: TensorSpec) -> dict[str, Any]:
    del shape, result
    return {"to": DTYPES[int(node.attributes["to"])]}


_READERS: dict[str, Callable[[OnnxNode, Shape, TensorSpec], dict[str, Any] | None]] = {
    "transpose": _transpose,
    "concat": _concat,
    "qlinear-concat": _qlinear_concat,
    "split": _split,
    "slice": _slice,
    "pad": _pad,
    "expand": _output,
    "reshape": _output,
    "tile": _tile,
    "cast": _cast,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "reorder-input": _reorder_input,
    "reorder-output": _reorder_output,
    "depth-to-space": _depth,
    "space-to-depth": _depth,
    "trilu": _trilu,
}


def write(p: Movement) -> OnnxNode | None:
    """The node of a movement, or None where ONNX has none."""
    op, shapes, arguments, dtype, mode = p.op, p.shapes, p.arguments, p.dtype, p.mode
    if op not in _NAMES:
        return None
    operands = tuple(
        weight(shape, dtype) if place in p.constant else data(shape, dtype) for place, shape in enumerate(shapes)
    )
    inputs: list[Operand | None] = [*operands]
    attributes: dict[str, Any] = {}
    rank = len(shapes[0]) if shapes else 0
    match op:
        case "transpose":
            attributes = {"perm": arguments}
        case "concat" | "flatten":
            attributes = {"axis": arguments[0]}
        case "qlinear-concat":
            attributes = {"axis": arguments[0]}
            inputs = [*quantisation(dtype), *interleaved(operands, dtype)]
        case "split":
            attributes = {"axis": arguments[0]}
            inputs.append(constant(arguments[1:]))
        case "slice":
            starts, ends, steps = arguments[:rank], arguments[rank : 2 * rank], arguments[2 * rank :]
            # An end of −1 means "past the first element" here, but "the last element" in ONNX.
            ends = tuple(-n - 1 if end < 0 else end for end, n in zip(ends, shapes[0], strict=True))
            inputs += [constant(starts), constant(ends), constant(tuple(range(rank))), constant(steps)]
        case "pad":
            attributes = {"mode": mode}
            inputs.append(constant(arguments))
        case "expand" | "reshape" | "tile" | "squeeze" | "unsqueeze" | "constant-of-shape":
            inputs.append(constant(arguments))
        case "cast":
            attributes = {"to": _TYPES[p.outputs[0].dtype]}
        case "reorder-input":
            attributes = {"channels_last": arguments[0]}
        case "reorder-output":
            attributes = {"channels": arguments[0], "channels_last": arguments[1]}
        case "depth-to-space" | "space-to-depth":
            attributes = {"blocksize": arguments[0]} | ({"mode": mode} if mode else {})
        case "range":
            inputs += [constant((value,), dtype, ()) for value in (0, arguments[0], 1)]
        case "trilu":
            attributes = {"upper": arguments[0]}
            inputs.append(constant(arguments[1:], shape=()))
    if op == "constant-of-shape":
        import onnx

        attributes = {"value": onnx.helper.make_tensor("value", _TYPES[dtype], [1], [0])}
    return build(_NAMES[op], inputs, p.outputs, attributes, block=p.block)
