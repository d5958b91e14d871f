"""torch's fused calls for self-attention and for an encoder layer, as the calls that its CPU kernels make inside.

Source: `native_multi_head_attention_cpu` and `transformer_encoder_layer_forward` of torch 2
(`aten/src/ATen/native/transformers/`).
"""

# ruff: noqa: TID253 (this module is imported only when something is traced)

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _attention(
    query: Tensor,
    _key: Tensor,
    _value: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    result_weight: Tensor,
    result_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Self-attention: `query` is (batch, length, width), and its modules pass it as key and value too."""
    batch, length, _ = query.shape
    size = width // heads
    projected = _aten.mm(query.reshape(batch * length, width), qkv_weight.t()).view(batch, length, 3 * width)
    q, k, v = (
        part.view(batch * heads, length, size)
        for part in _aten._transform_bias_rescale_qkv(projected, qkv_bias, heads)
    )
    scores = _aten.bmm(q, k.transpose(1, 2)).view(batch, heads, length, length)
    if mask is None:
        weights = _aten._softmax(scores, 3, False)
    else:
        weights = _aten._masked_softmax(scores, mask.to(torch.bool), 3, mask_type)
    mixed = _aten.bmm(weights.view(batch * heads, length, length), v).view(batch, heads, length, size)
    rows = mixed.permute(0, 2, 1, 3).contiguous().view(batch * length, width)
    result = _aten.addmm(result_bias, rows, result_weight.t()).view(batch, length, width)
    if need_weights and average_weights:
        weights = weights.sum(1).div_(heads)
    return result, weights if need_weights else None


def _encoder_layer(
    source: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    result_weight: Tensor,
    result_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    epsilon: float,
    *parameters: Any,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """An encoder layer: attention and two products, each added to what it got, and two normalisations."""
    norms, (first, first_bias, second, second_bias), rest = parameters[:4], parameters[4:8], parameters[8:]
    mask, mask_type = rest[0] if rest else mask, rest[1] if len(rest) > 1 else mask_type

    def normalised(x: Tensor, at: int) -> Tensor:
        return _aten.layer_norm(x, [width], norms[2 * at], norms[2 * at + 1], epsilon)

    x = normalised(source, 0) if norm_first else source
    x = _attention(
        *(x, x, x, width, heads, qkv_weight, qkv_bias, result_weight, result_bias), mask, False, False, mask_type
    )[0].add_(source)
    before = x if norm_first else normalised(x, 0)
    x = (normalised(before, 1) if norm_first else before).view(-1, width)
    x = _aten.addmm(first_bias, x, first.t())
    x = _aten.gelu_(x) if use_gelu else _aten.relu_(x)
    x = _aten.addmm(second_bias, x, second.t()).view(source.shape).add_(before)
    return x if norm_first else normalised(x, 1)


PARTS: Mapping[Any, Callable[..., Any]] = {
    _aten._native_multi_head_attention.default: _attention,
    _aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
