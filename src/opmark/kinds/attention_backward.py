"""Gradients of a fused attention kernel: of queries, keys and values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.call import AtenCall
from opmark.core.kind import Choice, Kind, Range, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import calls as _aten
from opmark.kinds._shared.shapes import code, scaled, size_bytes

_PREFIX = "_scaled_dot_product_"
_SUFFIX = "_attention_backward"
# By name: the variant, and where the mask, the result, and `is_causal` stand (a mask may be a keyword).
_CALLS: dict[str, tuple[str, int | None, int, int]] = {
    f"{_PREFIX}flash_attention_for_cpu_backward": ("flash-cpu", None, 4, 7),
    f"{_PREFIX}flash{_SUFFIX}": ("flash", None, 4, 11),
    f"{_PREFIX}efficient{_SUFFIX}": ("efficient", 4, 5, 11),
    f"{_PREFIX}cudnn{_SUFFIX}": ("cudnn", 8, 4, 14),
}
_NAMES = {variant: name for name, (variant, *_) in _CALLS.items()}
# Append only: a learner's category codes are the places in this list.
VARIANTS = ("flash-cpu", "flash", "efficient", "cudnn")
_PER_SCORE_FLOPS = 14  # the exponential again (8), scaling, masking, and the gradient of softmax
_MOST_FLOPS = 8_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBackward:
    """`flat` stores heads inside a position, as projections leave them; `mask` is the added tensor's shape."""

    batch: int
    heads: int
    kv_heads: int
    query_length: int
    key_length: int
    head_size: int
    value_size: int
    causal: bool = False
    mask: tuple[int, ...] = ()
    mask_dtype: str = ""
    variant: str = "flash-cpu"
    flat: bool = True
    dtype: str = "float32"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of queries, keys, values and the result."""
        return (
            (self.batch, self.heads, self.query_length, self.head_size),
            (self.batch, self.kv_heads, self.key_length, self.head_size),
            (self.batch, self.kv_heads, self.key_length, self.value_size),
            (self.batch, self.heads, self.query_length, self.value_size),
        )


class AttentionBackwardKind(Kind[AttentionBackward]):
    """Gradients of attention (Dao et al., 2022: five matrix products, scores computed again)."""

    name = "attention-backward"
    parameters = AttentionBackward
    matrix = True
    categories = ("variant",)
    languages = ("aten",)
    aten_ops = frozenset(_CALLS)
    space = {
        "batch": Choice((1, 2, 2, 4, 8)),
        "heads": Choice((2, 4, 6, 8, 12, 12, 16, 32)),
        "length": Range(8, 1024),
        "head_size": Choice((16, 32, 64, 64, 64, 80, 96, 128)),
        "causal": Choice((False, True)),
        "mask": Choice((False, False, True)),
        "flat": Choice((True, True, False)),
    }

    def work(self, p: AttentionBackward) -> Work:
        scores = p.batch * p.heads * p.query_length * p.key_length
        # As forward: a causal kernel skips what lies above the diagonal.
        seen = scores * (p.key_length - p.query_length / 2) / p.key_length if p.causal else float(scores)
        q, k, v, result = (size_bytes(shape, p.dtype) for shape in p.shapes)
        rows = size_bytes((p.batch, p.heads, p.query_length), "float32")
        mask_bytes = size_bytes(p.mask, p.mask_dtype) if p.mask_dtype else 0
        return Work(
            flops=round(seen * (6 * p.head_size + 4 * p.value_size + _PER_SCORE_FLOPS)),
            read_bytes=q + k + v + 2 * result + rows + mask_bytes,
            written_bytes=q + k + v,
        )

    def features(self, p: AttentionBackward) -> dict[str, float]:
        return {
            "batch": p.batch,
            "heads": p.heads,
            "kv_heads": p.kv_heads,
            "query_length": p.query_length,
            "key_length": p.key_length,
            "head_size": p.head_size,
            "value_size": p.value_size,
            "causal": float(p.causal),
            "mask_elements": math.prod(p.mask) if p.mask_dtype else 0,
            "variant": code(p.variant, VARIANTS),
            "flat": float(p.flat),
        }

    def shape_group(self, p: AttentionBackward) -> str:
        return f"{p.query_length}-{p.key_length}-{p.head_size}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> AttentionBackward | None:
        batch, length = values["batch"], values["length"]
        masked = values["mask"] and not values["causal"]
        p = AttentionBackward(
            batch=batch,
            heads=values["heads"],
            kv_heads=values["heads"],
            query_length=length,
            key_length=length,
            head_size=values["head_size"],
            value_size=values["head_size"],
            causal=values["causal"],
            mask=(batch, 1, length, length) if masked else (),
            mask_dtype=setting.dtype if masked else "",
            flat=values["flat"],
            dtype=setting.dtype,
        )
        return p if self.work(p).flops <= _MOST_FLOPS else None

    def vary(self, p: AttentionBackward, width: float, extent: float) -> AttentionBackward:
        ratio, kv_heads = p.heads // p.kv_heads, scaled(p.kv_heads, width)
        keys, queries = scaled(p.key_length, extent), scaled(p.query_length, extent)
        after = {(-1, p.key_length): keys, (-2, p.query_length): queries, (-3, p.heads): kv_heads * ratio}
        mask = tuple(after.get((axis - len(p.mask), size), size) for axis, size in enumerate(p.mask))
        heads = kv_heads * ratio
        return replace(
            p,
            heads=heads,
            kv_heads=kv_heads,
            key_length=keys,
            query_length=queries,
            mask=mask,
            flat=p.flat and heads > 1,
        )

    def from_aten(self, call: AtenCall) -> AttentionBackward | None:
        variant, mask_at, result_at, causal_at = _CALLS[_aten.operator(call)]
        q, k, v = (_aten.tensor(call, index) for index in (1, 2, 3))
        result = _aten.tensor(call, result_at)
        if q is None or k is None or v is None or result is None or len(q.shape) != 4:
            return None
        mask = _aten.tensor(call, 99 if mask_at is None else mask_at, "attn_mask")
        strides = _aten.stride(call, 1)
        return AttentionBackward(
            batch=q.shape[0],
            heads=q.shape[1],
            kv_heads=k.shape[1],
            query_length=q.shape[2],
            key_length=k.shape[2],
            head_size=q.shape[3],
            value_size=v.shape[3],
            causal=bool(_aten.argument(call, causal_at, "is_causal", False)),
            mask=mask.shape if mask else (),
            mask_dtype=mask.dtype if mask else "",
            variant=variant,
            flat=strides is not None and strides[1] < strides[2],
            dtype=q.dtype,
        )

    def to_aten(self, p: AttentionBackward) -> AtenCall | None:
        specs = [TensorSpec(shape, p.dtype) for shape in p.shapes]
        q, k, v, result = specs
        mask = TensorSpec(p.mask, p.mask_dtype) if p.mask_dtype else None
        rows, number = TensorSpec((p.batch, p.heads, p.query_length), "float32"), TensorSpec((), "int64")
        gradient_first = (result, q, k, v)
        lengths = (None, None, p.query_length, p.key_length)
        more: dict[str, Any] = {}
        arguments: tuple[Any, ...]
        match p.variant:
            case "flash-cpu":
                arguments, more = (*gradient_first, result, rows, 0.0, p.causal), {"attn_mask": mask} if mask else {}
            case "flash":
                arguments = (*gradient_first, result, rows, *lengths, 0.0, p.causal, number, number)
            case "efficient":
                asked = (True, True, True, False)
                arguments = (*gradient_first, mask, result, rows, number, number, 0.0, asked, p.causal)
            case _:
                arguments = (*gradient_first, result, rows, number, number, mask, *lengths, 0.0, p.causal)
        strides = [_aten.permuted(shape, (0, 2, 1, 3)) for shape in (p.shapes[3], *p.shapes[:3])]
        if p.variant != "efficient" or mask is None:
            strides.append(strides[0])
        return _aten.build(
            _NAMES[p.variant],
            *arguments,
            outputs=specs[:3],
            strides=strides if p.flat else (),
            **more,
        )


KIND = AttentionBackwardKind()
