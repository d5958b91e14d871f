"""ATen's spelling of matrix products: plain ones of two matrices, batched ones, each with an optional sum."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.gemm import Gemm
    from opmark.kinds.matmul import MatMul

PLAIN_NAMES = frozenset({"addmm", "mm", "mv", "addmv"})
BATCHED_NAMES = frozenset({"bmm", "baddbmm"})


def read_plain(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Gemm`; strides say what is stored transposed."""
    first = 1 if _aten.operator(call).startswith("add") else 0
    a, b = _aten.tensor(call, first), _aten.tensor(call, first + 1)
    if a is None or b is None:
        return None
    m, k = a.shape
    n = b.shape[1] if len(b.shape) == 2 else 1
    return {
        "m": m,
        "k": k,
        "n": n,
        "bias": _bias(_aten.tensor(call, 0), m, n) if first else "none",
        "trans_a": _aten.transposed(_aten.stride(call, first)),
        "trans_b": _aten.transposed(_aten.stride(call, first + 1)),
        "weight": _aten.is_weight(call, first + 1),
        "dtype": a.dtype,
    }


def write_plain(p: "Gemm") -> AtenCall | None:
    """The call, or None with an activation, which torch does not fuse."""
    if p.activation:
        return None
    left, right = (p.m, p.k), (p.k, p.n)
    strides = [
        _aten.swapped(left) if p.trans_a else None,
        _aten.swapped(right) if p.trans_b else None,
    ]
    a, b, result = (TensorSpec(shape, p.dtype) for shape in (left, right, (p.m, p.n)))
    if p.bias_shape is None:
        return _aten.build("mm", a, b, outputs=[result], strides=strides, weights=(1,) if p.weight else ())
    bias = TensorSpec(p.bias_shape, p.dtype)
    weights = (0, 2) if p.weight else ()
    return _aten.build("addmm", bias, a, b, outputs=[result], strides=[None, *strides], weights=weights)


def read_batched(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `MatMul`; a `baddbmm` adds a matrix while it scales, which costs as much as scaling."""
    first = 1 if _aten.operator(call) == "baddbmm" else 0
    a, b = _aten.tensor(call, first), _aten.tensor(call, first + 1)
    if a is None or b is None:
        return None
    return {
        "batch_a": a.shape[:1],
        "batch_b": b.shape[:1],
        "m": a.shape[1],
        "k": a.shape[2],
        "n": b.shape[2],
        "trans_a": _aten.transposed(_aten.stride(call, first)),
        "trans_b": _aten.transposed(_aten.stride(call, first + 1)),
        "scale": bool(first),
        "weight": _aten.is_weight(call, first + 1),
        "dtype": a.dtype,
    }


def write_batched(p: "MatMul") -> AtenCall | None:
    """The call, or None where the batch axes broadcast or stand elsewhere than first."""
    if p.trans_batch_a or p.trans_batch_b or p.batch_a != p.batch_b or not p.batch_a:
        return None
    count = 1
    for size in p.batch_a:
        count *= size
    left, right, shape = (count, p.m, p.k), (count, p.k, p.n), (count, p.m, p.n)
    strides = [_aten.swapped(left) if p.trans_a else None, _aten.swapped(right) if p.trans_b else None]
    a, b, result = (TensorSpec(each, p.dtype) for each in (left, right, shape))
    if not p.scale:
        return _aten.build("bmm", a, b, outputs=[result], strides=strides, weights=(1,) if p.weight else ())
    return _aten.build(
        "baddbmm", result, a, b, alpha=0.125, outputs=[result], strides=[None, *strides],
        weights=(2,) if p.weight else (),
    )  # fmt: skip


def _bias(spec: TensorSpec | None, m: int, n: int) -> str:
    if spec is None:
        return "none"
    if spec.elements == 1 and m * n > 1:
        return "scalar"
    if spec.shape in {(n,), (1, n)}:
        return "row"
    return "matrix" if spec.shape == (m, n) else "column"
