"""Conversions between floating point and eight bits: static and dynamic quantisation, dequantisation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import OnnxNode
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, weight
from opmark.kinds._onnx.quantised import weight_quantisation
from opmark.kinds._shared.shapes import code, tensor_of_form, varied, without_channels

_ONNX = {"quantize": "QuantizeLinear", "dequantize": "DequantizeLinear", "dynamic": "DynamicQuantizeLinear"}
_FROM_ONNX = {name: op for op, name in _ONNX.items()}
OPERATIONS = tuple(_ONNX)
# Per element: scale, round, add and clamp; subtract and scale; a search for the range, then as the first.
_FLOPS = {"quantize": 4, "dequantize": 2, "dynamic": 6}
_DTYPES = ("uint8", "int8", "int32", "uint16", "int16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantize:
    """`dtype` is the whole-number type; `axis` has one scale per element, None one scale for the tensor.

    A `constant` input is a weight, which every call unpacks.
    """

    op: str
    shape: tuple[int, ...]
    axis: int | None = None
    constant: bool = False
    dtype: str = "uint8"

    @property
    def input(self) -> TensorSpec:
        """The tensor to convert."""
        return TensorSpec(self.shape, self.dtype if self.op == "dequantize" else "float32")

    @property
    def output(self) -> TensorSpec:
        """The result."""
        return TensorSpec(self.shape, "float32" if self.op == "dequantize" else self.dtype)


class QuantizeKind(Kind[Quantize]):
    """Quantisation and its reverse."""

    name = "quantize"
    parameters = Quantize
    most_bytes = 128 * 2**20
    languages = ("onnx",)
    dtypes = frozenset({"int8"})
    categories = ("op", "dtype")
    onnx_ops = frozenset({*_FROM_ONNX, f"{MICROSOFT}:QuantizeLinear", f"{MICROSOFT}:DequantizeLinear"})
    space = {
        "op": Choice(tuple(_ONNX)),
        "form": Choice(("image", "image", "sequence", "sequence", "attention", "vector", "weight", "channels")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 4096, 8),
        "extent": Range(2, 512),
        "heads": Choice((2, 4, 8, 12, 16)),
    }

    def work(self, p: Quantize) -> Work:
        scales = 4 * p.shape[p.axis] if p.axis is not None else 0
        read = p.input.size_bytes
        return Work(
            flops=_FLOPS[p.op] * math.prod(p.shape),
            read_bytes=read + scales,
            written_bytes=p.output.size_bytes,
            weight_bytes=scales + (read if p.constant else 0),
        )

    def features(self, p: Quantize) -> dict[str, float]:
        inner = math.prod(p.shape[p.axis + 1 :]) if p.axis is not None else math.prod(p.shape)
        return {
            "op": code(p.op, OPERATIONS),
            "dtype": code(p.dtype, _DTYPES),
            "elements": math.prod(p.shape),
            "per_axis": float(p.axis is not None),
            # Elements in a row that share a scale.
            "run": inner,
            "constant": float(p.constant),
        }

    def shape_group(self, p: Quantize) -> str:
        return f"{p.op}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Quantize | None:
        batch, channels, extent, form = (values[name] for name in ("batch", "channels", "extent", "form"))
        fixed = form in {"weight", "channels"}
        shape = (channels, extent) if fixed else tensor_of_form(form, batch, channels, extent, values["heads"])
        if setting.language != "onnx" or (fixed and values["op"] != "dequantize"):
            return None
        p = Quantize(
            op=values["op"],
            shape=shape,
            axis=0 if form == "channels" else None,
            constant=fixed,
            dtype="int8" if fixed else "uint8",
        )
        return self.within_limits(p)

    def vary(self, p: Quantize, width: float, extent: float) -> Quantize:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_onnx(self, node: OnnxNode) -> Quantize | None:
        op, x, y = _FROM_ONNX[node.op_type], present(node, 0), node.outputs[0]
        if x is None or y is None or node.attributes.get("block_size", 0):
            return None
        whole, floating = (x.spec, y) if op == "dequantize" else (y, x.spec)
        if floating.dtype != "float32" or whole.dtype not in _DTYPES:
            return None
        factor = present(node, 1) if op != "dynamic" else None
        axis = None
        if factor is not None and factor.spec.elements > 1:
            axis = int(node.attributes.get("axis", 1)) % len(x.spec.shape)
        return Quantize(op=op, shape=x.spec.shape, axis=axis, constant=x.constant, dtype=whole.dtype)

    def to_onnx(self, p: Quantize) -> OnnxNode | None:
        make = weight if p.constant else data
        x = make(p.shape, p.input.dtype)
        if p.op == "dynamic":
            return build(_ONNX[p.op], [x], [p.output, TensorSpec(()), TensorSpec((), p.dtype)])
        channels = p.shape[p.axis] if p.axis is not None else 1
        factors = weight_quantisation(channels, p.dtype, per_channel=channels > 1)
        attributes = {} if p.axis is None else {"axis": p.axis}
        # The runtime had sixteen bits before the standard.
        domain = f"{MICROSOFT}:" if p.dtype.endswith("16") else ""
        return build(f"{domain}{_ONNX[p.op]}", [x, *factors], [p.output], attributes)


KIND = QuantizeKind()
