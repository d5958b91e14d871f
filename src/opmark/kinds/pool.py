"""Pooling: maxima and averages over a window, or over the whole image."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode
from opmark.core.kernels.kind import FLOATING, Choice, Kind, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._aten.windows import adaptive_window, clipped_window
from opmark.kinds._libraries import pool_loops
from opmark.kinds._onnx.nodes import MICROSOFT, NCHWC, build, data, present, read_window
from opmark.kinds._onnx.quantised import nchw, nhwc, quantisation
from opmark.kinds._shared import pooling
from opmark.kinds._shared.pooling import PoolSizes
from opmark.kinds._shared.shapes import EIGHT_BITS, code, scaled, size_bytes
from opmark.kinds._shared.windows import valid_taps, waste, window_outputs

_ONNX = {
    "max": "MaxPool",
    "average": "AveragePool",
    "global-average": "GlobalAveragePool",
    "global-max": "GlobalMaxPool",
    "lp": "LpPool",
}
# Eight-bit operations; those that end in `_LAST` take and give tensors with channels last.
_QUANTISED = {
    "qlinear-average": "QLinearAveragePool",
    "qlinear-global-average": "QLinearGlobalAveragePool",
    "max-nhwc": "NhwcMaxPool",
    "qlinear-average-nhwc": "QLinearAveragePool",
    "qlinear-global-average-nhwc": "QLinearGlobalAveragePool",
}
_LAST = "-nhwc"
_FROM_ONNX = {name: op for op, name in _ONNX.items()}
_FROM_QUANTISED = {name: op.removesuffix(_LAST) for op, name in _QUANTISED.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = (*_ONNX, "adaptive-average", "adaptive-max", *_QUANTISED)
_DILATABLE_OPSET = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(PoolSizes):
    """`pads` holds all beginnings, then all ends; `indices` are a second result; global pooling has a full-size kernel.

    `block` is the width of the blocked channel layout. `dilatable` is the averaging that operator set 19 defined: ONNX
    Runtime computes it in a plain loop, about eight times slower than the one before, dilated or not.
    """

    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    indices: bool = False
    block: int = 0
    dilatable: bool = False

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        positions = window_outputs(self.size, self.kernel, self.stride, self.pads, self.dilation, ceil=self.ceil)
        return (self.batch, self.channels, *positions)


class PoolKind(Kind[Pool]):
    """Pooling."""

    name = "pool"
    parameters = Pool
    most_bytes = 128 * 2**20
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = frozenset(
        {
            *_FROM_ONNX,
            *(f"{NCHWC}:{_ONNX[op]}" for op in ("max", "average", "global-average", "global-max")),
            *(f"{MICROSOFT}:{name}" for name in _FROM_QUANTISED),
        }
    )
    aten_ops = frozenset({"max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"})
    space = {
        "op": Choice(("max", "max", "average", "global-average")),
        **pooling.SPACE,
        "layout": Choice(("blocked", "blocked", "plain")),
        "dilatable": Choice((False, True)),
    }

    def work(self, p: Pool) -> Work:
        written = size_bytes(p.output, p.dtype)
        return Work(
            flops=math.prod(p.output) * math.prod(p.kernel) * (3 if p.op == "lp" else 1),
            read_bytes=size_bytes((p.batch, p.channels, *p.size), p.dtype),
            written_bytes=written + (size_bytes(p.output, "int64") if p.indices else 0),
        )

    def features(self, p: Pool) -> dict[str, float]:
        return (
            {"op": code(p.op, OPERATIONS)}
            | pooling.pool_features(p, p.output)
            | {"indices": float(p.indices), "block": p.block, "dilatable": float(p.dilatable)}
        )

    def details(self, p: Pool) -> dict[str, float]:
        return {
            "valid_taps": valid_taps(
                p.size, p.output[2:], kernel=p.kernel, stride=p.stride, pads=p.pads, dilation=p.dilation
            ),
            "position_waste": waste(p.output[-1], 6),
        }

    def steps(self, p: Pool) -> dict[str, float]:
        scalar = p.indices or p.dilatable or p.dtype in EIGHT_BITS
        return pool_loops.pool_steps(p, p.output[2:], p.dilation, p.block, scalar=scalar)

    def shape_group(self, p: Pool) -> str:
        return f"{p.op}-{p.batch}-{p.size}-{p.kernel}-{p.stride}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Pool | None:
        op, size = values["op"], values["size"]
        quantised = setting.dtype in EIGHT_BITS
        if quantised:
            if setting.language != "onnx":
                return None
            op = _quantised(op, last=values["layout"] == "blocked")
        everything = "global" in op
        kernel = size if everything else values["kernel"]
        onnx = setting.language == "onnx"
        # Torch averages a whole image by a reduction.
        if kernel > size or (everything and not onnx):
            return None
        block = setting.block if values["layout"] == "blocked" and onnx and not quantised else 0
        pad = (kernel - 1) // 2 if values["padding"] == "same" and not everything else 0
        p = Pool(
            op=op,
            batch=values["batch"],
            channels=max(block, values["channels"] // block * block) if block else values["channels"],
            size=(size, size),
            kernel=(kernel, kernel),
            stride=(1, 1) if everything else (values["stride"],) * 2,
            pads=(pad,) * 4,
            dilation=(1, 1),
            indices=op == "max" and not onnx,
            block=block,
            dilatable=bool(onnx and op == "average" and not block and values["dilatable"]),
            dtype="uint8" if quantised else setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Pool, width: float, extent: float) -> Pool:
        if "global" in p.op:
            size = kernel = tuple(1 if n == 1 else scaled(n, extent) for n in p.size)
        else:
            size, kernel = pooling.resized(p.size, p.kernel, p.dilation, extent), p.kernel
        return replace(p, channels=scaled(p.channels, width, p.block or 1), size=size, kernel=kernel)

    def from_onnx(self, node: OnnxNode) -> Pool | None:
        op, x = _FROM_ONNX.get(node.op_type, ""), present(node, 0)
        if x is None or len(x.spec.shape) < 3:
            return None
        get, shape = node.attributes.get, x.spec.shape
        if not op:
            last = node.op_type == "NhwcMaxPool" or bool(get("channels_last", 0))
            op = _FROM_QUANTISED[node.op_type] + (_LAST if last else "")
            shape = nchw(shape) if last else shape
        size = shape[2:]
        ones = (1,) * len(size)
        everything = "global" in op
        kernel = size if everything else tuple(get("kernel_shape", ones))
        window = read_window(node, size, kernel) | ({"stride": ones, "dilation": ones} if everything else {})
        return Pool(
            op=op,
            batch=shape[0],
            channels=shape[1],
            size=size,
            kernel=kernel,
            **window,
            ceil=bool(get("ceil_mode", 0)),
            count_pads=bool(get("count_include_pad", 0)),
            indices=len(node.outputs) > 1 and node.outputs[1] is not None,
            block=node.block if node.domain == NCHWC else 0,
            dilatable=op == "average" and node.domain == "" and node.opset >= _DILATABLE_OPSET,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: Pool) -> OnnxNode | None:
        if p.op not in _ONNX and p.op not in _QUANTISED:
            return None
        attributes: dict[str, Any] = {}
        if "global" not in p.op:
            attributes = {"kernel_shape": p.kernel, "strides": p.stride, "pads": p.pads, "ceil_mode": int(p.ceil)}
            if max(p.dilation) > 1:
                attributes["dilations"] = p.dilation
            if "average" in p.op:
                attributes["count_include_pad"] = int(p.count_pads)
        if p.op in _QUANTISED:
            return _quantised_node(p, attributes)
        outputs = [TensorSpec(p.output, p.dtype)]
        if p.indices:
            outputs.append(TensorSpec(p.output, "int64"))
        name = f"{NCHWC}:{_ONNX[p.op]}" if p.block else _ONNX[p.op]
        opset = 20 if p.dilatable or p.op != "average" else _DILATABLE_OPSET - 1
        return build(
            name, [data((p.batch, p.channels, *p.size), p.dtype)], outputs, attributes, opset=opset, block=p.block
        )

    def from_aten(self, call: AtenCall) -> Pool | None:
        name, x = calls.operator(call), calls.tensor(call, 0)
        if x is None or len(x.shape) != 4:
            return None
        batch, channels, *image = x.shape
        size = tuple(image)
        fields: dict[str, Any] = {
            "batch": batch,
            "channels": channels,
            "size": size,
            "dilation": (1, 1),
            "dtype": x.dtype,
        }
        if "adaptive" in name:
            window = adaptive_window(size, calls.each(call.arguments[1], 2))
            if window is None:
                return None
            largest = name == "adaptive_max_pool2d"
            op = "adaptive-max" if largest else "adaptive-average"
            return Pool(**fields, **window, op=op, pads=(0,) * 4, indices=largest)
        kernel = calls.each(call.arguments[1], 2)
        stride = calls.each(calls.argument(call, 2, "stride", ()) or kernel, 2)
        pads = calls.each(calls.argument(call, 3, "padding", 0), 2) * 2
        fields |= clipped_window(size, kernel, stride, pads) | {"pads": pads}
        if name == "avg_pool2d":
            ceil = calls.argument(call, 4, "ceil_mode", False)
            count = calls.argument(call, 5, "count_include_pad", True)
            # Without padding there is nothing to count.
            return Pool(**fields, op="average", ceil=bool(ceil), count_pads=bool(count and any(pads)))
        fields["dilation"] = calls.each(calls.argument(call, 4, "dilation", 1), 2)
        return Pool(**fields, op="max", ceil=bool(calls.argument(call, 5, "ceil_mode", False)), indices=True)

    def to_aten(self, p: Pool) -> AtenCall | None:
        axes = len(p.size)
        before = p.pads[:axes]
        too_wide = any(2 * pad > k for pad, k in zip(before, p.kernel, strict=True))
        if p.block or axes != 2 or before != p.pads[axes:] or too_wide:
            return None
        x, result = TensorSpec((p.batch, p.channels, *p.size), p.dtype), TensorSpec(p.output, p.dtype)
        places, window = TensorSpec(p.output, "int64"), (p.kernel, p.stride, before)
        match p.op:
            case "max":
                return calls.build("max_pool2d_with_indices", x, *window, p.dilation, p.ceil, outputs=[result, places])
            case "average":
                return calls.build("avg_pool2d", x, *window, p.ceil, p.count_pads, outputs=[result])
            case "adaptive-average":
                return calls.build("_adaptive_avg_pool2d", x, p.output[2:], outputs=[result])
            case "adaptive-max" | "global-max":
                return calls.build("adaptive_max_pool2d", x, p.output[2:], outputs=[result, places])
            case "global-average":
                # Torch turns an adaptive average of one position into this call.
                return calls.build("mean.dim", x, (2, 3), True, outputs=[result])
        return None


def _quantised(op: str, *, last: bool) -> str:
    """The eight-bit operation that stands for `op`; a maximum needs no scale, only a layout."""
    name = op if op == "max" else f"qlinear-{op}"
    return name + (_LAST if last else "")


def _quantised_node(p: Pool, attributes: dict[str, Any]) -> OnnxNode:
    last = p.op.endswith(_LAST)
    order = nhwc if last else tuple
    x, y = data(order((p.batch, p.channels, *p.size)), p.dtype), TensorSpec(order(p.output), p.dtype)
    if p.op.startswith("max"):
        return build(f"{MICROSOFT}:{_QUANTISED[p.op]}", [x], [y], attributes)
    inputs = [x, *quantisation(p.dtype), *quantisation(p.dtype)]
    return build(f"{MICROSOFT}:{_QUANTISED[p.op]}", inputs, [y], attributes | {"channels_last": int(last)})


KIND = PoolKind()
