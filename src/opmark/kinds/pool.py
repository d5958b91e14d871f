"""Pooling: maxima and averages over a window, or over the whole image."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall, OnnxNode
from opmark.core.kind import FLOATING, Choice, Kind, Range, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds import _pool_aten
from opmark.kinds._onnx.nodes import MICROSOFT, NCHWC, build, data, present
from opmark.kinds._onnx.quantised import EIGHT_BITS, nchw, nhwc, quantisation
from opmark.kinds._shared.shapes import code, resolved_pads, scaled, size_bytes, valid_taps, waste, window_output

_ONNX = {
    "max": "MaxPool",
    "average": "AveragePool",
    "global-average": "GlobalAveragePool",
    "global-max": "GlobalMaxPool",
    "lp": "LpPool",
}
# Of eight-bit numbers; those that end in `_LAST` take and give tensors with their channels last.
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
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """`size`, `kernel`, `stride`, `dilation` have one entry per spatial axis; `pads` all begins, then all ends.

    `ceil` keeps a window that hangs over the end; `count_pads` averages over padding too; `indices` are a second
    result; `block` is the width of the blocked channel layout. Global pooling has its own size as kernel.
    `dilatable` is the averaging that operator set 19 defined: ONNX Runtime has only a plain loop for it, about eight
    times slower than the one before, dilated or not.
    """

    op: str
    batch: int
    channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil: bool = False
    count_pads: bool = False
    indices: bool = False
    block: int = 0
    dilatable: bool = False
    dtype: str = "float32"

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        axes = len(self.size)
        sizes = []
        for axis in range(axes):
            pad = self.pads[axis] + self.pads[axes + axis]
            n, k, s, d = self.size[axis], self.kernel[axis], self.stride[axis], self.dilation[axis]
            positions = window_output(n, k, s, pad, d, ceil=self.ceil)
            # A window must start inside the input or its leading padding.
            if self.ceil and (positions - 1) * s >= n + self.pads[axis]:
                positions -= 1
            sizes.append(positions)
        return (self.batch, self.channels, *sizes)


class PoolKind(Kind[Pool]):
    """Pooling."""

    name = "pool"
    parameters = Pool
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = frozenset(
        {
            *_FROM_ONNX,
            *(f"{NCHWC}:{_ONNX[op]}" for op in ("max", "average", "global-average", "global-max")),
            *(f"{MICROSOFT}:{name}" for name in _FROM_QUANTISED),
        }
    )
    aten_ops = _pool_aten.NAMES
    space = {
        "op": Choice(("max", "max", "average", "global-average")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 2048, 8),
        "size": Range(4, 224),
        "kernel": Choice((2, 3, 3, 5, 7)),
        "stride": Choice((1, 2, 2)),
        "padding": Choice(("same", "none")),
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
        return {
            "op": code(p.op, OPERATIONS),
            "batch": p.batch,
            "channels": p.channels,
            "height": p.size[0] if len(p.size) > 1 else 1,
            "width": p.size[-1],
            "output_elements": math.prod(p.output),
            "window": math.prod(p.kernel),
            "stride": max(p.stride),
            "padded": float(any(p.pads)),
            "count_pads": float(p.count_pads),
            "indices": float(p.indices),
            "block": p.block,
            "dilatable": float(p.dilatable),
        }

    def details(self, p: Pool) -> dict[str, float]:
        return {
            "valid_taps": valid_taps(
                p.size, p.output[2:], kernel=p.kernel, stride=p.stride, pads=p.pads, dilation=p.dilation
            ),
            "position_waste": waste(p.output[-1], 6),
        }

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
        return p if self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: Pool, width: float, extent: float) -> Pool:
        size = tuple(1 if n == 1 else scaled(n, extent) for n in p.size)
        if "global" in p.op:
            kernel = size
        else:
            size = tuple(max(n, d * (k - 1) + 1) for n, k, d in zip(size, p.kernel, p.dilation, strict=True))
            kernel = p.kernel
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
        stride, dilation = tuple(get("strides", ones)), tuple(get("dilations", ones))
        pads = get("pads")
        return Pool(
            op=op,
            batch=shape[0],
            channels=shape[1],
            size=size,
            kernel=kernel,
            stride=ones if everything else stride,
            pads=resolved_pads(
                str(get("auto_pad", "NOTSET")),
                tuple(pads) if pads else None,
                size=size,
                kernel=kernel,
                stride=stride,
                dilation=dilation,
            ),
            dilation=ones if everything else dilation,
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
        found = _pool_aten.read(call)
        return None if found is None else Pool(**found)

    def to_aten(self, p: Pool) -> AtenCall | None:
        return _pool_aten.write(p)


def _quantised(op: str, *, last: bool) -> str:
    """What stands for `op` among eight-bit numbers: maxima need no scales, so that only their layout is another."""
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
