"""Attention as one kernel: softmax(Q·Kᵀ·scale + mask)·V, with or without the projections before it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import MICROSOFT, build, data, present, qualified, weight
from opmark.kinds._shared.attention import (
    AttentionSizes,
    attention_features,
    attention_steps,
    is_flat,
    resized,
    sizes_of,
)
from opmark.kinds._shared.shapes import code, scaled, size_bytes

_PACKED = f"{MICROSOFT}:Attention"
_MULTI_HEAD = f"{MICROSOFT}:MultiHeadAttention"
_NATIVE = "Attention"
# Append only. The first three are ONNX Runtime's implementations, the others torch's.
VARIANTS = ("native", "multi-head", "packed", "flash", "efficient", "math", "overrideable", "cudnn")
# ATen's fused kernels (the composite call chooses among them and is not recorded itself). By name: the variant, where
# the mask stands (a keyword where None), and where `is_causal` stands.
_PREFIX = "_scaled_dot_product_"
_FLASH = f"{_PREFIX}flash_attention_for_cpu"
_CALLS: dict[str, tuple[str, int | None, int]] = {
    _FLASH: ("flash", None, 4),
    f"{_PREFIX}flash_attention": ("flash", None, 4),
    f"{_PREFIX}efficient_attention": ("efficient", 3, 6),
    f"{_PREFIX}cudnn_attention": ("cudnn", 3, 6),
    f"{_PREFIX}fused_attention_overrideable": ("overrideable", 3, 5),
}
_PER_SCORE_FLOPS = 12  # scale, mask, and a softmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(AttentionSizes):
    """`variant` is the implementation that runs.

    `hidden` is the width of the input that a packed kernel projects itself, 0 for the others; `flat` folds the heads
    into the last axis.
    """

    variant: str = "native"
    hidden: int = 0
    bias: bool = False
    flat: bool = False
    dtype: str = "float32"


class AttentionKind(Kind[Attention]):
    """Attention."""

    name = "attention"
    parameters = Attention
    matrix = True
    most_flops = 6_000_000_000
    categories = ("variant",)
    onnx_ops = frozenset({_NATIVE, _PACKED, _MULTI_HEAD})
    aten_ops = frozenset(_CALLS)
    space = {
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "heads": Choice((2, 4, 6, 8, 12, 12, 16, 32)),
        "groups": Choice((1, 1, 1, 4)),
        "length": Range(8, 1024),
        "queries": Choice(("all", "all", "all", "one")),
        "head_size": Choice((32, 64, 64, 64, 80, 96, 128)),
        "causal": Choice((False, True)),
        "mask": Choice((False, True)),
        "variant": Choice(("native", "multi-head")),
    }

    def work(self, p: Attention) -> Work:
        flops = round(p.seen_scores * (2 * p.head_size + 2 * p.value_size + _PER_SCORE_FLOPS))
        q, k, v, result = (size_bytes(shape, p.dtype) for shape in p.head_shapes)
        weight_bytes, wide = 0, p.heads * (2 * p.head_size + p.value_size)
        if p.hidden:
            flops += 2 * p.batch * p.query_length * p.hidden * wide
            weight_bytes = size_bytes((p.hidden + p.bias, wide), p.dtype)
            read = size_bytes((p.batch, p.query_length, p.hidden), p.dtype) + weight_bytes
        else:
            weight_bytes = size_bytes((wide,), p.dtype) if p.bias else 0
            read = q + k + v + weight_bytes
        return Work(flops=flops, read_bytes=read + p.mask_bytes, written_bytes=result, weight_bytes=weight_bytes)

    def features(self, p: Attention) -> dict[str, float]:
        return attention_features(p) | {
            "variant": code(p.variant, VARIANTS),
            "hidden": p.hidden,
            "bias": float(p.bias),
            "flat": float(p.flat),
        }

    def steps(self, p: Attention) -> dict[str, float]:
        return attention_steps(p)

    def shape_group(self, p: Attention) -> str:
        return f"{p.query_length}-{p.key_length}-{p.head_size}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Attention | None:
        onnx = setting.language == "onnx"
        heads, groups, length = values["heads"], values["groups"], values["length"]
        variant = values["variant"] if onnx else "flash"
        if heads % groups or (variant != "native" and groups > 1):
            return None
        # "many" for each key: keys are reduced in space, as in SegFormer
        keys = max(1, length // 16) if values["queries"] == "many" else length
        queries = 1 if values["queries"] == "one" else length
        causal = bool(values["causal"] and queries == keys)
        masked = bool(values["mask"] and not causal)
        p = Attention(
            batch=values["batch"],
            heads=heads,
            kv_heads=heads // groups,
            query_length=queries,
            key_length=keys,
            head_size=values["head_size"],
            value_size=values["head_size"],
            causal=causal,
            mask=(values["batch"], 1, queries, keys) if masked else (),
            mask_dtype=setting.dtype if masked else "",
            variant=variant,
            flat=variant == "multi-head",
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Attention, width: float, extent: float) -> Attention:
        key_length = scaled(p.key_length, extent)
        query_length = min(p.query_length, key_length)
        if p.query_length == p.key_length:
            query_length = key_length
        elif p.query_length > p.key_length:
            query_length = scaled(p.query_length, extent)
        hidden = scaled(p.hidden, width) if p.hidden else 0
        return replace(p, **resized(p, width, query_length, key_length), hidden=hidden)

    def from_onnx(self, node: OnnxNode) -> Attention | None:
        readers = {_NATIVE: _from_native, _MULTI_HEAD: _from_multi_head, _PACKED: _from_packed}
        return readers[qualified(node)](node)

    def to_onnx(self, p: Attention) -> OnnxNode | None:
        builders = {"native": _to_native, "multi-head": _to_multi_head, "packed": _to_packed}
        return builders[p.variant](p) if p.variant in builders else None

    def from_aten(self, call: AtenCall) -> Attention | None:
        variant, mask_at, causal_at = _CALLS[calls.operator(call)]
        mask = calls.keyword_tensor(call, "attn_mask") if mask_at is None else calls.tensor(call, mask_at, "attn_bias")
        sizes = sizes_of([calls.tensor(call, index) for index in range(3)], mask)
        if sizes is None:
            return None
        causal = bool(calls.argument(call, causal_at, "is_causal", False))
        return Attention(**sizes, causal=causal, variant=variant, flat=is_flat(calls.stride(call, 0)))

    def to_aten(self, p: Attention) -> AtenCall | None:
        if p.variant in {"native", "multi-head", "packed", "math"} or p.hidden or p.bias:
            return None
        *shapes, result_shape = p.head_shapes
        strides = [calls.permuted(shape, (0, 2, 1, 3)) if p.flat else None for shape in shapes]
        mask = TensorSpec(p.mask, p.mask_dtype) if p.mask_dtype else None
        specs, result = [TensorSpec(shape, p.dtype) for shape in shapes], TensorSpec(result_shape, p.dtype)
        if p.variant == "flash":
            rows = TensorSpec((p.batch, p.heads, p.query_length), "float32")
            more: dict[str, Any] = {"attn_mask": mask} if mask else {}
            return calls.build(_FLASH, *specs, 0.0, p.causal, outputs=[result, rows], strides=strides, **more)
        # Other devices choose their own variant there.
        name = "scaled_dot_product_attention"
        return calls.build(name, *specs, mask, 0.0, p.causal, outputs=[result], strides=strides)


def _mask(operand: Operand | None) -> dict[str, Any]:
    return {"mask": operand.spec.shape, "mask_dtype": operand.spec.dtype} if operand is not None else {}


def _from_native(node: OnnxNode) -> Attention | None:
    q, k, v = (present(node, index) for index in range(3))
    # A cache (inputs 4 and 5) would make it another kernel.
    if q is None or k is None or v is None or present(node, 4) is not None:
        return None
    flat = len(q.spec.shape) == 3
    heads = int(node.attributes["q_num_heads"]) if flat else q.spec.shape[1]
    kv_heads = int(node.attributes["kv_num_heads"]) if flat else k.spec.shape[1]
    return Attention(
        batch=q.spec.shape[0],
        heads=heads,
        kv_heads=kv_heads,
        query_length=q.spec.shape[-2],
        key_length=k.spec.shape[-2],
        head_size=q.spec.shape[-1] // heads if flat else q.spec.shape[-1],
        value_size=v.spec.shape[-1] // kv_heads if flat else v.spec.shape[-1],
        causal=bool(node.attributes.get("is_causal", 0)),
        flat=flat,
        dtype=q.spec.dtype,
        **_mask(present(node, 3)),
    )


def _to_native(p: Attention) -> OnnxNode:
    def shape(heads: int, length: int, size: int) -> tuple[int, ...]:
        return (p.batch, length, heads * size) if p.flat else (p.batch, heads, length, size)

    inputs = [
        data(shape(p.heads, p.query_length, p.head_size), p.dtype),
        data(shape(p.kv_heads, p.key_length, p.head_size), p.dtype),
        data(shape(p.kv_heads, p.key_length, p.value_size), p.dtype),
        data(p.mask, p.mask_dtype) if p.mask_dtype else None,
    ]
    attributes: dict[str, Any] = {"is_causal": int(p.causal)}
    if p.flat:
        attributes |= {"q_num_heads": p.heads, "kv_num_heads": p.kv_heads}
    result = TensorSpec(shape(p.heads, p.query_length, p.value_size), p.dtype)
    return build(_NATIVE, inputs, [result], attributes, opset=23)


def _from_multi_head(node: OnnxNode) -> Attention | None:
    q, k, v = (present(node, index) for index in range(3))
    if q is None or k is None or v is None or len(q.spec.shape) != 3 or len(k.spec.shape) != 3:
        return None
    if any(present(node, index) is not None for index in range(6, 10)) or present(node, 4) is not None:
        return None
    heads = int(node.attributes["num_heads"])
    return Attention(
        batch=q.spec.shape[0],
        heads=heads,
        kv_heads=heads,
        query_length=q.spec.shape[1],
        key_length=k.spec.shape[1],
        head_size=q.spec.shape[2] // heads,
        value_size=v.spec.shape[2] // heads,
        causal=bool(node.attributes.get("unidirectional", 0)),
        variant="multi-head",
        bias=present(node, 3) is not None,
        flat=True,
        dtype=q.spec.dtype,
        **_mask(present(node, 5)),
    )


def _to_multi_head(p: Attention) -> OnnxNode:
    key = (p.batch, p.key_length, p.heads * p.head_size)
    value = (p.batch, p.key_length, p.heads * p.value_size)
    inputs = [
        data((p.batch, p.query_length, p.heads * p.head_size), p.dtype),
        data(key, p.dtype),
        data(value, p.dtype),
        weight((p.heads * (2 * p.head_size + p.value_size),), p.dtype) if p.bias else None,
        None,
        data(p.mask, p.mask_dtype) if p.mask_dtype else None,
    ]
    result = TensorSpec((p.batch, p.query_length, p.heads * p.value_size), p.dtype)
    return build(_MULTI_HEAD, inputs, [result], {"num_heads": p.heads, "unidirectional": int(p.causal)})


def _from_packed(node: OnnxNode) -> Attention | None:
    x, w = present(node, 0), present(node, 1)
    if x is None or w is None or any(present(node, index) is not None for index in (4, 6)):
        return None
    heads = int(node.attributes["num_heads"])
    sizes = node.attributes.get("qkv_hidden_sizes") or (w.spec.shape[1] // 3,) * 3
    mask = present(node, 3) or present(node, 5)
    if sizes[0] != sizes[1] or (mask is not None and mask is not present(node, 3)):
        return None
    batch, length, hidden = x.spec.shape
    return Attention(
        batch=batch,
        heads=heads,
        kv_heads=heads,
        query_length=length,
        key_length=length,
        head_size=sizes[0] // heads,
        value_size=sizes[2] // heads,
        causal=bool(node.attributes.get("unidirectional", 0)),
        variant="packed",
        hidden=hidden,
        bias=present(node, 2) is not None,
        flat=True,
        dtype=x.spec.dtype,
        **_mask(mask),
    )


def _to_packed(p: Attention) -> OnnxNode:
    sizes = (p.heads * p.head_size, p.heads * p.head_size, p.heads * p.value_size)
    inputs = [
        data((p.batch, p.query_length, p.hidden), p.dtype),
        weight((p.hidden, sum(sizes)), p.dtype),
        weight((sum(sizes),), p.dtype) if p.bias else None,
        data(p.mask, p.mask_dtype, limit=2) if p.mask_dtype else None,
    ]
    result = TensorSpec((p.batch, p.query_length, sizes[2]), p.dtype)
    attributes = {"num_heads": p.heads, "unidirectional": int(p.causal), "qkv_hidden_sizes": sizes}
    return build(_PACKED, inputs, [result], attributes)


KIND = AttentionKind()
