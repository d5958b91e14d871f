"""Normalisations: batch, layer, root-mean-square, group, instance, local response, with or without a skip sum."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, qualified, weight
from opmark.kinds._shared.shapes import code, size_bytes, varied_groups, without_channels

# Append only: a learner's category codes are the places in this list.
OPERATIONS = (
    "batch", "layer", "rms", "group", "instance", "local-response", "skip-layer", "skip-rms", "lp",
    "batch-training", "mean-variance",
)  # fmt: skip
_FLOPS = {"batch": 2, "rms": 5, "local-response": 14, "skip-layer": 9, "skip-rms": 6, "lp": 6}
_ONNX = {
    "batch": "BatchNormalization",
    "layer": "LayerNormalization",
    "rms": "SimplifiedLayerNormalization",
    "group": "GroupNormalization",
    "instance": "InstanceNormalization",
    "local-response": "LRN",
    "skip-layer": f"{MICROSOFT}:SkipLayerNormalization",
    "skip-rms": f"{MICROSOFT}:SkipSimplifiedLayerNormalization",
    "lp": "LpNormalization",
    "mean-variance": "MeanVarianceNormalization",
}
_ATEN = {
    "layer": "native_layer_norm",
    "rms": "rms_norm",
    "group": "native_group_norm",
    "batch": "native_batch_norm",
    "batch-training": "native_batch_norm",
}
_ATEN_BATCH = frozenset(
    {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"}
)
_EPSILON = 1e-5
_FROM_ONNX = {name: op for op, name in _ONNX.items()} | {"RMSNormalization": "rms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """`axis` is the first normalised axis (layer, rms) or the only one (lp); `groups` and `window` where they apply.

    `scale` and `shift` are the per-channel constants; `input_bias` adds one more to a skip sum, and `sum_output` writes
    the sum too.
    """

    op: str
    shape: tuple[int, ...]
    axis: int = 1
    groups: int = 1
    window: int = 0
    scale: bool = True
    shift: bool = True
    input_bias: bool = False
    sum_output: bool = False
    dtype: str = "float32"

    @property
    def channels(self) -> int:
        """Length of the per-channel constants."""
        if self.op in {"layer", "rms", "skip-layer", "skip-rms"}:
            return math.prod(self.shape[self.axis :])
        return self.shape[1] if len(self.shape) > 1 else 1

    @property
    def skip(self) -> bool:
        """True if a second tensor is added first."""
        return self.op.startswith("skip")


class NormKind(Kind[Norm]):
    """Normalisation."""

    name = "norm"
    parameters = Norm
    most_bytes = 128 * 2**20
    categories = ("op",)
    onnx_ops = frozenset(_FROM_ONNX)
    aten_ops = frozenset({"native_layer_norm", "native_group_norm", "_fused_rms_norm", "rms_norm", *_ATEN_BATCH})
    space = {
        "op": Choice(
            ("layer", "layer", "skip-layer", "rms", "skip-rms", "batch", "instance", "group", "local-response")
        ),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "length": Range(1, 1024),
        "size": Range(4, 112),
        "channels": Range(32, 4096, 8),
        "groups": Choice((8, 16, 32)),
        "sum_output": Choice((True, False)),
        "shift": Choice((True, True, False)),
    }  # fmt: skip

    def work(self, p: Norm) -> Work:
        elements = math.prod(p.shape)
        size = size_bytes(p.shape, p.dtype)
        vectors = p.scale + p.shift + p.input_bias + (2 if p.op == "batch" else 0)
        weight_bytes = size_bytes((vectors, p.channels), p.dtype)
        return Work(
            flops=elements * _FLOPS.get(p.op, 8),
            read_bytes=size * (2 if p.skip else 1) + weight_bytes,
            written_bytes=size * (2 if p.sum_output else 1),
            weight_bytes=weight_bytes,
        )

    def features(self, p: Norm) -> dict[str, float]:
        last = p.op in {"layer", "rms", "skip-layer", "skip-rms"}
        axis = p.axis if last else 1 if len(p.shape) == 2 else 2
        return {
            "op": code(p.op, OPERATIONS),
            "rows": math.prod(p.shape[:axis]),
            "columns": math.prod(p.shape[axis:]),
            "channels": p.channels,
            "groups": p.groups,
            "window": p.window,
            "constants": p.scale + p.shift + p.input_bias,
            "sum_output": float(p.sum_output),
        }

    def details(self, p: Norm) -> dict[str, float]:
        # Of vectors, the constants change along a row and not from row to row.
        return {"flat": float(p.op == "batch" and len(p.shape) == 2)}

    def shape_group(self, p: Norm) -> str:
        return f"{p.op}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Norm | None:
        op, batch, channels = values["op"], values["batch"], values["channels"]
        onnx = setting.language == "onnx"
        sequence = op in {"layer", "rms", "skip-layer", "skip-rms"}
        if not onnx and op in {"skip-layer", "skip-rms", "local-response", "instance"}:
            return None
        if op == "group" and channels % values["groups"]:
            return None
        shape: tuple[int, ...] = (batch, channels, values["size"], values["size"])
        if sequence:
            shape = (batch, values["length"], channels)
        elif op == "batch" and values["size"] == 1:
            # tokens are normalised as a flat list of rows
            shape = (batch * values["length"], channels)
        p = Norm(
            op=op,
            shape=shape,
            axis=2 if sequence else 1,
            groups=values["groups"] if op == "group" else 1,
            window=5 if op == "local-response" else 0,
            scale=op != "local-response",
            shift=op not in {"rms", "skip-rms", "local-response"}
            and (op not in {"layer", "skip-layer"} or values["shift"]),
            sum_output=bool(op.startswith("skip") and values["sum_output"]),
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Norm, width: float, extent: float) -> Norm:
        return replace(p, shape=varied_groups(p.shape, width, extent, p.groups))

    def from_onnx(self, node: OnnxNode) -> Norm | None:
        op, x = _FROM_ONNX[qualified(node)], present(node, 0)
        if x is None:
            return None
        shape, get = x.spec.shape, node.attributes.get
        rank = len(shape)
        flags: dict[str, Any] = {"scale": True, "shift": True}
        if op in {"layer", "rms"}:
            flags = {"axis": int(get("axis", -1)) % rank, "scale": True, "shift": present(node, 2) is not None}
        elif op in {"skip-layer", "skip-rms"}:
            skip = present(node, 1)
            if skip is None or skip.spec.shape != shape:
                return None
            flags = {
                "axis": rank - 1,
                "shift": op == "skip-layer" and present(node, 3) is not None,
                "input_bias": present(node, 4 if op == "skip-layer" else 3) is not None,
                "sum_output": len(node.outputs) > 3 and node.outputs[3] is not None,
            }
        elif op == "group":
            flags = {"groups": int(get("num_groups", 1))}
        elif op == "local-response":
            flags = {"window": int(get("size", 1)), "scale": False, "shift": False}
        elif op == "lp":
            flags = {"axis": int(get("axis", -1)) % rank, "scale": False, "shift": False}
        elif op == "mean-variance":
            flags = {"scale": False, "shift": False}
        elif op == "batch" and get("training_mode", 0):
            return None
        return Norm(op=op, shape=shape, dtype=x.spec.dtype, **flags)

    def to_onnx(self, p: Norm) -> OnnxNode | None:
        if p.op not in _ONNX:
            return None
        vector = weight(p.shape[p.axis :] if p.op in {"layer", "rms"} else (p.channels,), p.dtype)
        inputs: list[Operand | None] = [data(p.shape, p.dtype)]
        outputs: list[TensorSpec | None] = [TensorSpec(p.shape, p.dtype)]
        attributes: dict[str, Any] = {}
        if p.skip:
            inputs += [data(p.shape, p.dtype), vector]
            if p.op == "skip-layer":
                inputs.append(vector if p.shift else None)
            inputs.append(vector if p.input_bias else None)
            if p.sum_output:
                outputs += [None, None, TensorSpec(p.shape, p.dtype)]
        else:
            inputs += [vector] * (p.scale + p.shift)
            if p.op == "batch":
                inputs += [vector, vector]
        if p.op in {"layer", "rms", "lp"}:
            attributes["axis"] = p.axis
        if p.op == "group":
            attributes["num_groups"] = p.groups
        if p.op == "local-response":
            attributes["size"] = p.window
        return build(_ONNX[p.op], inputs, outputs, attributes, opset=21 if p.op == "group" else 20)

    def from_aten(self, call: AtenCall) -> Norm | None:
        name, x = calls.operator(call), calls.tensor(call, 0)
        if x is None:
            return None
        fields: dict[str, Any] = {}
        scale_at = 1
        if name in {"native_layer_norm", "_fused_rms_norm", "rms_norm"}:
            op, scale_at = "layer" if name == "native_layer_norm" else "rms", 2
            fields["axis"] = len(x.shape) - len(call.arguments[1])
        elif name == "native_group_norm":
            op = "group"
            fields["groups"] = int(calls.argument(call, 6, "group", 1))
        else:
            training = name != "_native_batch_norm_legit_no_training" and calls.argument(call, 5, "training", False)
            op = "batch-training" if training else "batch"
        return Norm(
            op=op,
            shape=x.shape,
            scale=calls.tensor(call, scale_at, "weight") is not None,
            # RMS normalisation has no shift; the argument after its weight is a number.
            shift=calls.tensor(call, scale_at + 1, "bias") is not None,
            dtype=x.dtype,
            **fields,
        )

    def to_aten(self, p: Norm) -> AtenCall | None:
        x, normalised = TensorSpec(p.shape, p.dtype), p.shape[p.axis :]
        vector = TensorSpec(normalised if p.op in {"layer", "rms"} else (p.channels,), p.dtype)
        scale, shift = (vector if p.scale else None), (vector if p.shift else None)
        weights = tuple(range(1, 1 + p.scale + p.shift))
        name, outputs = _ATEN.get(p.op), [x]
        arguments: tuple[Any, ...]
        match p.op:
            case "layer":
                outputs += [TensorSpec((*p.shape[: p.axis], *(1 for _ in normalised)), p.dtype)] * 2
                arguments = (normalised, scale, shift, _EPSILON)
            case "rms":
                arguments = (normalised, scale, _EPSILON)
            case "group":
                outputs += [TensorSpec((p.shape[0], p.groups), p.dtype)] * 2
                arguments = (scale, shift, p.shape[0], p.channels, math.prod(p.shape[2:]), p.groups, _EPSILON)
            case _:
                training = p.op == "batch-training"
                outputs += [TensorSpec((p.channels if training else 0,), p.dtype)] * 2
                arguments = (scale, shift, vector, vector, training, 0.1, _EPSILON)
                weights = (*weights, 1 + len(weights), 2 + len(weights))
        return None if name is None else calls.build(name, x, *arguments, outputs=outputs, weights=weights)


KIND = NormKind()
