"""ATen's spelling of reductions."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.reduce import Reduce

# By name: the operation, and where `keepdim` stands after the axes.
_OVER = {
    "mean": "mean", "sum": "sum", "amax": "max", "amin": "min", "max": "max", "min": "min", "prod": "prod",
    "any": "any", "all": "all", "argmax": "argmax", "argmin": "argmin", "logsumexp": "log-sum-exp",
}  # fmt: skip
_SPREAD = {"var": "var", "std": "std"}
_NORMS = frozenset({"linalg_vector_norm"})
_ALONG = {"cumsum": "cumsum", "cumprod": "cumprod", "sort": "sort", "topk": "topk"}
NAMES = frozenset({*_OVER, *_SPREAD, *_NORMS, *_ALONG})


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Reduce`, or None where a form is not covered."""
    name, x = _aten.operator(call), _aten.tensor(call, 0)
    if x is None or (name in {"max", "min"} and _aten.tensor(call, 1) is not None):
        return None
    fields: dict[str, Any] = {"shape": x.shape, "dtype": x.dtype}
    if name in _ALONG:
        at = 2 if name == "topk" else 1
        fields |= {"op": _ALONG[name], "axes": _axes(_aten.argument(call, at, "dim", -1), x)}
        return fields | ({"k": int(call.arguments[1])} if name == "topk" else {})
    if name in _NORMS:
        order = _aten.argument(call, 1, "ord", 2)
        if order not in {1, 2}:
            return None
        axes, keep = _aten.argument(call, 2, "dim"), _aten.argument(call, 3, "keepdim", False)
        return fields | {"op": f"l{int(order)}", "axes": _axes(axes, x), "keep": bool(keep)}
    axes = _aten.argument(call, 1, "dim")
    at = 3 if name in _SPREAD and _aten.overload(call) == "dim" else 2
    keep = bool(_aten.argument(call, at, "keepdim", False))
    return fields | {"op": (_OVER | _SPREAD)[name], "axes": _axes(axes, x), "keep": keep}


def write(p: "Reduce") -> AtenCall | None:
    """The call, or None where torch has no such operation over these axes."""
    x = TensorSpec(p.shape, p.dtype)
    if p.op in {"cumsum", "cumprod"}:
        return _aten.build(p.op, x, p.axes[0], outputs=p.outputs)
    if p.op == "sort":
        return _aten.build(p.op, x, p.axes[0], outputs=p.outputs)
    if p.op == "topk":
        return _aten.build(p.op, x, p.k, p.axes[0], outputs=p.outputs)
    if p.op in {"l1", "l2"}:
        return _aten.build("linalg_vector_norm", x, int(p.op[1]), p.axes, p.keep, outputs=p.outputs)
    if p.op in _SPREAD:
        return _aten.build(f"{p.op}.correction", x, p.axes, correction=1, keepdim=p.keep, outputs=p.outputs)
    names = {"mean": "mean.dim", "sum": "sum.dim_IntList", "max": "amax", "min": "amin", "log-sum-exp": "logsumexp"}
    if p.op in names:
        return _aten.build(names[p.op], x, p.axes, p.keep, outputs=p.outputs)
    if p.op in {"any", "all"}:
        return _aten.build(f"{p.op}.dims", x, p.axes, p.keep, outputs=p.outputs)
    if len(p.axes) != 1:
        return None
    if p.op in {"argmax", "argmin"}:
        return _aten.build(p.op, x, p.axes[0], p.keep, outputs=p.outputs)
    return _aten.build("prod.dim_int", x, p.axes[0], p.keep, outputs=p.outputs) if p.op == "prod" else None


def _axes(given: Any, x: TensorSpec) -> tuple[int, ...]:
    rank = len(x.shape)
    if given is None or given == ():
        return tuple(range(rank))
    listed = given if isinstance(given, tuple) else (given,)
    return tuple(sorted(int(axis) % rank for axis in listed)) if rank else ()
