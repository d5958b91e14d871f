"""Attention as forward and backward kernels share it: sizes, scores, features, relatives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.tensor import TensorSpec
from opmark.kinds._shared.shapes import LANES, Shape, padding, scaled, size_bytes

# Keys that one product takes.
_KEY_BLOCK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSizes:
    """`heads` query heads over `kv_heads` key heads; `mask` is the mask's shape, `mask_dtype` its type or empty."""

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

    @property
    def seen_scores(self) -> float:
        """Scores that are computed: a causal kernel skips those above the diagonal, by convention half of a square."""
        scores = self.batch * self.heads * self.query_length * self.key_length
        if self.causal:
            return scores * (self.key_length - self.query_length / 2) / self.key_length
        return float(scores)

    @property
    def mask_bytes(self) -> int:
        """Bytes of the mask."""
        return size_bytes(self.mask, self.mask_dtype) if self.mask_dtype else 0

    @property
    def head_shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        """Shapes of queries, keys, values and the result, heads before positions."""
        return (
            (self.batch, self.heads, self.query_length, self.head_size),
            (self.batch, self.kv_heads, self.key_length, self.head_size),
            (self.batch, self.kv_heads, self.key_length, self.value_size),
            (self.batch, self.heads, self.query_length, self.value_size),
        )


def attention_features(p: AttentionSizes) -> dict[str, float]:
    """The features that forward and backward kernels share."""
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
    }


def attention_steps(p: AttentionSizes) -> dict[str, float]:
    """Repetitions of torch's attention for CPUs: products of blocks of queries and of keys, and rows of scores.

    Source: `cpu_flash_attention` of torch 2 (`aten/src/ATen/native/cpu/FlashAttentionKernel.cpp`).
    """
    many, few, least = 768, 192, 32
    block = min(p.query_length, 256 if p.query_length >= many else 64 if p.query_length >= few else least)
    blocks = math.ceil(p.query_length / block)
    products = p.batch * p.heads * blocks * math.ceil(p.key_length / _KEY_BLOCK)
    return {
        "log_rows": math.log(p.batch * p.heads * p.query_length),
        "log_products": math.log(products),
        "log_heads": math.log(p.batch * p.heads),
        "log_scores": math.log(p.batch * p.heads * p.query_length * p.key_length),
        "log_block": math.log(block),
        "last_block": (p.query_length - (blocks - 1) * block) / block,
        "masked": float(bool(p.mask_dtype)),
        **{
            f"{name}_lane_padding": padding(size)
            for name, size in (("queries", p.query_length), ("keys", p.key_length), ("value", p.value_size))
        },
        "keys_tail_share": p.key_length % LANES / LANES,
    }


def resized(p: AttentionSizes, width: float, query_length: int, key_length: int) -> dict[str, Any]:
    """The fields of `p` that change with as many heads per key head, and these lengths."""
    kv_heads = scaled(p.kv_heads, width)
    heads = kv_heads * (p.heads // p.kv_heads)
    after = {(-1, p.key_length): key_length, (-2, p.query_length): query_length, (-3, p.heads): heads}
    return {
        "heads": heads,
        "kv_heads": kv_heads,
        "query_length": query_length,
        "key_length": key_length,
        "mask": tuple(after.get((axis - len(p.mask), size), size) for axis, size in enumerate(p.mask)),
    }


def sizes_of(operands: Sequence[TensorSpec | None], mask: TensorSpec | None) -> dict[str, Any] | None:
    """The sizes of four-axis queries, keys and values (`operands`); None for others."""
    q, k, v = operands
    if q is None or k is None or v is None or len(q.shape) != 4:
        return None
    return {
        "batch": q.shape[0],
        "heads": q.shape[1],
        "kv_heads": k.shape[1],
        "query_length": q.shape[2],
        "key_length": k.shape[2],
        "head_size": q.shape[3],
        "value_size": v.shape[3],
        "mask": mask.shape if mask else (),
        "mask_dtype": mask.dtype if mask else "",
        "dtype": q.dtype,
    }


def is_flat(strides: tuple[int, ...] | None) -> bool:
    """True if heads are stored inside a position, as a projection leaves them."""
    return strides is not None and len(strides) == 4 and strides[1] < strides[2]
