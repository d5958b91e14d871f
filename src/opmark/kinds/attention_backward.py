"""Gradients of a fused attention kernel: of queries, keys and values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.attention import (
    AttentionSizes,
    attention_features,
    attention_steps,
    is_flat,
    resized,
    sizes_of,
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionBackward(AttentionSizes):
    """`flat` stores heads inside a position, as projections leave them."""

    variant: str = "flash-cpu"
    flat: bool = True
    dtype: str = "float32"


class AttentionBackwardKind(Kind[AttentionBackward]):
    """Gradients of attention (Dao et al., 2022: five matrix products, scores computed again)."""

    name = "attention-backward"
    parameters = AttentionBackward
    matrix = True
    most_flops = 8_000_000_000
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
        q, k, v, result = (size_bytes(shape, p.dtype) for shape in p.head_shapes)
        rows = size_bytes((p.batch, p.heads, p.query_length), "float32")
        return Work(
            flops=round(p.seen_scores * (6 * p.head_size + 4 * p.value_size + _PER_SCORE_FLOPS)),
            read_bytes=q + k + v + 2 * result + rows + p.mask_bytes,
            written_bytes=q + k + v,
        )

    def features(self, p: AttentionBackward) -> dict[str, float]:
        return attention_features(p) | {"variant": code(p.variant, VARIANTS), "flat": float(p.flat)}

    def steps(self, p: AttentionBackward) -> dict[str, float]:
        return attention_steps(p)

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
        return self.within_limits(p)

    def vary(self, p: AttentionBackward, width: float, extent: float) -> AttentionBackward:
        sizes = resized(p, width, scaled(p.query_length, extent), scaled(p.key_length, extent))
        return replace(p, **sizes, flat=p.flat and sizes["heads"] > 1)

    def from_aten(self, call: AtenCall) -> AttentionBackward | None:
        variant, mask_at, result_at, causal_at = _CALLS[calls.operator(call)]
        mask = calls.keyword_tensor(call, "attn_mask") if mask_at is None else calls.tensor(call, mask_at, "attn_mask")
        sizes = sizes_of([calls.tensor(call, index) for index in (1, 2, 3)], mask)
        if sizes is None or calls.tensor(call, result_at) is None:
            return None
        causal = bool(calls.argument(call, causal_at, "is_causal", False))
        return AttentionBackward(**sizes, causal=causal, variant=variant, flat=is_flat(calls.stride(call, 1)))

    def to_aten(self, p: AttentionBackward) -> AtenCall | None:
        specs = [TensorSpec(shape, p.dtype) for shape in p.head_shapes]
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
        strides = [calls.permuted(shape, (0, 2, 1, 3)) for shape in (p.head_shapes[3], *p.head_shapes[:3])]
        if p.variant != "efficient" or mask is None:
            strides.append(strides[0])
        return calls.build(
            _NAMES[p.variant],
            *arguments,
            outputs=specs[:3],
            strides=strides if p.flat else (),
            **more,
        )


KIND = AttentionBackwardKind()
