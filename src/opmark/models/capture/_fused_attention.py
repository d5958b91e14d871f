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
_Named = Mapping[str, Any]


def in_parts(func: Any, args: tuple[Any, ...], kwargs: _Named) -> Any:
    """Compute one of the `FUSED` calls by the calls that it makes inside."""
    given = {one.name: one.default_value for one in func._schema.arguments if one.has_default_value()}
    names = (one.name for one in func._schema.arguments)
    return FUSED[func](given | dict(zip(names, args, strict=False)) | dict(kwargs))


def _attention(given: _Named) -> tuple[Tensor, Tensor | None]:
    """Self-attention: queries are (batch, length, width), and modules pass them as keys and values too."""
    query, heads = given["query"], given["num_head"]
    batch, length, width = query.shape
    size = width // heads
    projected = _aten.mm(query.reshape(batch * length, width), given["qkv_weight"].t()).view(batch, length, 3 * width)
    q, k, v = (
        part.view(batch * heads, length, size)
        for part in _aten._transform_bias_rescale_qkv(projected, given["qkv_bias"], heads)
    )
    scores = _aten.bmm(q, k.transpose(1, 2)).view(batch, heads, length, length)
    if given["mask"] is None:
        weights = _aten._softmax(scores, 3, False)
    else:
        weights = _aten._masked_softmax(scores, given["mask"].to(torch.bool), 3, given["mask_type"])
    mixed = _aten.bmm(weights.view(batch * heads, length, length), v).view(batch, heads, length, size)
    rows = mixed.permute(0, 2, 1, 3).contiguous().view(batch * length, width)
    result = _aten.addmm(given["proj_bias"], rows, given["proj_weight"].t()).view(batch, length, width)
    if given["need_weights"] and given["average_attn_weights"]:
        weights = weights.sum(1).div_(heads)
    return result, weights if given["need_weights"] else None


def _encoder_layer(given: _Named) -> Tensor:
    """An encoder layer: attention and two products, each added to what it got, and two normalisations."""
    source, norm_first = given["src"], given["norm_first"]
    width = given["embed_dim"]

    def normalised(x: Tensor, which: int) -> Tensor:
        weight, bias = given[f"norm_weight_{which}"], given[f"norm_bias_{which}"]
        result: Tensor = _aten.layer_norm(x, [width], weight, bias, given["eps"])
        return result

    def product(x: Tensor, which: int) -> Tensor:
        result: Tensor = _aten.addmm(given[f"ffn_bias_{which}"], x, given[f"ffn_weight_{which}"].t())
        return result

    query = normalised(source, 1) if norm_first else source
    own = {"query": query, "num_head": given["num_heads"], "need_weights": False, "average_attn_weights": False}
    x = _attention({**given, **own})[0].add_(source)
    before = x if norm_first else normalised(x, 1)
    x = product((normalised(before, 2) if norm_first else before).view(-1, width), 1)
    x = _aten.gelu_(x) if given["use_gelu"] else _aten.relu_(x)
    x = product(x, 2).view(source.shape).add_(before)
    return x if norm_first else normalised(x, 2)


FUSED: Mapping[Any, Callable[[_Named], Any]] = {
    _aten._native_multi_head_attention.default: _attention,
    _aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
