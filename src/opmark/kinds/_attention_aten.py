"""ATen's fused attention kernels; the composite call chooses among them and is not recorded itself."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.attention import Attention

_PREFIX = "_scaled_dot_product_"
# By name: the variant, where the mask stands, and where `is_causal` stands.
_CALLS: dict[str, tuple[str, int | None, int]] = {
    f"{_PREFIX}flash_attention_for_cpu": ("flash", None, 4),
    f"{_PREFIX}flash_attention": ("flash", None, 4),
    f"{_PREFIX}efficient_attention": ("efficient", 3, 6),
    f"{_PREFIX}cudnn_attention": ("cudnn", 3, 6),
    f"{_PREFIX}fused_attention_overrideable": ("overrideable", 3, 5),
}
NAMES = frozenset(_CALLS)


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of an `Attention`."""
    variant, mask_at, causal_at = _CALLS[_aten.operator(call)]
    q, k, v = (_aten.tensor(call, index) for index in range(3))
    if q is None or k is None or v is None or len(q.shape) != 4:
        return None
    mask = _aten.tensor(call, 99 if mask_at is None else mask_at, "attn_mask" if mask_at is None else "attn_bias")
    return {
        "batch": q.shape[0],
        "heads": q.shape[1],
        "kv_heads": k.shape[1],
        "query_length": q.shape[2],
        "key_length": k.shape[2],
        "head_size": q.shape[3],
        "value_size": v.shape[3],
        "causal": bool(_aten.argument(call, causal_at, "is_causal", False)),
        "mask": mask.shape if mask else (),
        "mask_dtype": mask.dtype if mask else "",
        "variant": variant,
        "flat": _is_flat(_aten.stride(call, 0)),
        "dtype": q.dtype,
    }


def write(p: "Attention") -> AtenCall | None:
    """The call as the processor's kernel, or None where torch has no such kernel.

    Other devices choose their own variant in `scaled_dot_product_attention`.
    """
    if p.variant in {"native", "multi-head", "packed", "math"} or p.hidden or p.bias:
        return None
    shapes = [
        (p.batch, p.heads, p.query_length, p.head_size),
        (p.batch, p.kv_heads, p.key_length, p.head_size),
        (p.batch, p.kv_heads, p.key_length, p.value_size),
    ]
    strides = [_aten.permuted(shape, (0, 2, 1, 3)) if p.flat else None for shape in shapes]
    mask = TensorSpec(p.mask, p.mask_dtype) if p.mask_dtype else None
    result = TensorSpec((p.batch, p.heads, p.query_length, p.value_size), p.dtype)
    specs = [TensorSpec(shape, p.dtype) for shape in shapes]
    if p.variant == "flash":
        rows = TensorSpec((p.batch, p.heads, p.query_length), "float32")
        more: dict[str, Any] = {"attn_mask": mask} if mask else {}
        return _aten.build(
            f"{_PREFIX}flash_attention_for_cpu", *specs, 0.0, p.causal, outputs=[result, rows], strides=strides, **more
        )
    return _aten.build("scaled_dot_product_attention", *specs, mask, 0.0, p.causal, outputs=[result], strides=strides)


def _is_flat(found: tuple[int, ...] | None) -> bool:
    """Whether heads are stored inside a position, as a projection leaves them."""
    return found is not None and len(found) == 4 and found[1] < found[2]
