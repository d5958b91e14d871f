"""Reductions over axes, running sums, sorting, and the k largest elements."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import build, constant, data, present, whole
from opmark.kinds._shared.shapes import code, size_bytes, varied, without_channels

_REDUCTIONS = {
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "l1": "ReduceL1",
    "l2": "ReduceL2",
    "sum-square": "ReduceSumSquare",
    "log-sum-exp": "ReduceLogSumExp",
}
_ALONG = {"argmax": "ArgMax", "argmin": "ArgMin", "cumsum": "CumSum", "topk": "TopK"}
_ONNX = _REDUCTIONS | _ALONG
_FROM_ONNX = {name: op for op, name in _ONNX.items()}
# ATen's names: reductions over axes, operations along one, those with a correction, and the vector norm.
_ATEN_OVER = {
    "mean": "mean", "sum": "sum", "amax": "max", "amin": "min", "max": "max", "min": "min", "prod": "prod",
    "any": "any", "all": "all", "argmax": "argmax", "argmin": "argmin", "logsumexp": "log-sum-exp",
}  # fmt: skip
_ATEN_ALONG = frozenset({"cumsum", "cumprod", "sort", "topk"})
_ATEN_SPREAD = frozenset({"var", "std"})
_ATEN_NORM = "linalg_vector_norm"
# The overload that takes several axes and whether to keep them.
_TO_ATEN = {
    "mean": "mean.dim", "sum": "sum.dim_IntList", "max": "amax", "min": "amin", "log-sum-exp": "logsumexp",
    "any": "any.dims", "all": "all.dims",
}  # fmt: skip
# Append only: a learner's category codes are the places in this list.
OPERATIONS = (*_REDUCTIONS, *_ALONG, "any", "all", "var", "std", "norm", "sort", "cumprod")
_FLOPS = {"l2": 2, "sum-square": 2, "log-sum-exp": 10, "var": 4, "std": 4, "norm": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce:
    """`axes` are sorted and counted from the front; a `topk` keeps `k`; `keep` keeps reduced axes as ones."""

    op: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keep: bool = True
    k: int = 0
    dtype: str = "float32"

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        if self.op in {"cumsum", "sort", "cumprod"}:
            return self.shape
        length = self.k if self.op == "topk" else 1
        kept = [length if axis in self.axes else size for axis, size in enumerate(self.shape)]
        if self.op == "topk" or self.keep:
            return tuple(kept)
        return tuple(size for axis, size in enumerate(kept) if axis not in self.axes)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Every result."""
        if self.op in {"topk", "sort"}:
            return (TensorSpec(self.output, self.dtype), TensorSpec(self.output, "int64"))
        indices = self.op in {"argmax", "argmin"}
        return (TensorSpec(self.output, "int64" if indices else "bool" if self.op in {"any", "all"} else self.dtype),)


class ReduceKind(Kind[Reduce]):
    """Reduction."""

    name = "reduce"
    parameters = Reduce
    most_bytes = 128 * 2**20
    categories = ("op",)
    onnx_ops = frozenset(_FROM_ONNX)
    aten_ops = frozenset({*_ATEN_OVER, *_ATEN_ALONG, *_ATEN_SPREAD, _ATEN_NORM})
    space = {
        "op": Choice(("mean", "mean", "mean", "sum", "max", "prod", "argmax", "cumsum")),
        "form": Choice(("image", "image", "sequence", "pool-sequence", "channels")),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "channels": Range(8, 4096, 8),
        "extent": Range(4, 256),
        "keep": Choice((True, False)),
    }

    def work(self, p: Reduce) -> Work:
        return Work(
            flops=math.prod(p.shape) * _FLOPS.get(p.op, 1),
            read_bytes=size_bytes(p.shape, p.dtype),
            written_bytes=sum(spec.size_bytes for spec in p.outputs),
        )

    def features(self, p: Reduce) -> dict[str, float]:
        first, last = (min(p.axes), max(p.axes)) if p.axes else (0, len(p.shape) - 1)
        return {
            "op": code(p.op, OPERATIONS),
            "outer": math.prod(p.shape[:first]),
            "along": math.prod(p.shape[axis] for axis in p.axes),
            "inner": math.prod(p.shape[last + 1 :]),
            "elements": math.prod(p.shape),
            "axes": len(p.axes),
            "k": p.k,
            "rank": len(p.shape),
        }

    def details(self, p: Reduce) -> dict[str, float]:
        return {"contiguous": float(math.prod(p.shape[max(p.axes) + 1 :]) == 1 if p.axes else True)}

    def code_path(self, p: Reduce) -> dict[str, float]:
        # ONNX Runtime has another code for the columns of a single matrix: in its sum over axis 1, an element of
        # (1, 129, 3072) takes forty times as long as one of (2, 129, 3072) (decision 0058).
        first, last = (min(p.axes), max(p.axes)) if p.axes else (0, len(p.shape) - 1)
        return {"by_columns": float(math.prod(p.shape[:first]) == 1 < math.prod(p.shape[last + 1 :]))}

    def shape_group(self, p: Reduce) -> str:
        return f"{p.op}-{p.axes}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Reduce | None:
        batch, channels, extent, op = values["batch"], values["channels"], values["extent"], values["op"]
        image, sequence = (batch, channels, extent, extent), (batch, extent, channels)
        shape, axes = {
            "image": (image, (2, 3)),
            "sequence": (sequence, (2,)),
            "pool-sequence": (sequence, (1,)),
            "channels": (image, (1,)),
        }[values["form"]]
        along = op in _ALONG
        if op == "prod" and len(axes) > 1 and setting.language == "aten":
            return None
        p = Reduce(
            op=op,
            shape=shape,
            axes=axes[-1:] if along else axes,
            keep=True if op == "cumsum" else values["keep"],
            dtype=setting.dtype,
        )
        return self.within_limits(p)

    def vary(self, p: Reduce, width: float, extent: float) -> Reduce:
        shape = varied(p.shape, width, extent)
        return replace(p, shape=shape, k=min(p.k, shape[p.axes[0]]) if p.op == "topk" else p.k)

    def from_onnx(self, node: OnnxNode) -> Reduce | None:
        op, x = _FROM_ONNX[node.op_type], present(node, 0)
        if x is None:
            return None
        shape, get = x.spec.shape, node.attributes.get
        rank = len(shape)
        keep, k = bool(get("keepdims", 1)), 0
        if op in {"argmax", "argmin"}:
            axes: tuple[int, ...] | None = (int(get("axis", 0)),)
        elif op == "topk":
            kept = node.outputs[0]
            axes, keep = (int(get("axis", -1)),), True
            k = kept.shape[axes[0] % rank] if kept is not None else 0
        elif op == "cumsum":
            axes, keep = whole(node, "axis", 1), True
            if axes is None:
                return None
        else:
            axes = whole(node, "axes", 1)
            if axes is None and present(node, 1) is not None:
                return None
            if not axes:
                if get("noop_with_empty_axes", 0):
                    return None
                axes = tuple(range(rank))
        assert axes is not None
        normal = tuple(sorted(axis % rank for axis in axes)) if rank else ()
        return Reduce(op=op, shape=shape, axes=normal, keep=keep, k=k, dtype=x.spec.dtype)

    def to_onnx(self, p: Reduce) -> OnnxNode | None:
        if p.op not in _ONNX:
            return None
        inputs: list[Operand | None] = [data(p.shape, p.dtype)]
        attributes: dict[str, Any] = {}
        if p.op in {"argmax", "argmin"}:
            attributes = {"axis": p.axes[0], "keepdims": int(p.keep)}
        elif p.op == "topk":
            inputs.append(constant((p.k,)))
            attributes = {"axis": p.axes[0]}
        elif p.op == "cumsum":
            inputs.append(constant(p.axes[:1], shape=()))
        else:
            inputs.append(constant(p.axes))
            attributes = {"keepdims": int(p.keep)}
        return build(_ONNX[p.op], inputs, p.outputs, attributes)

    def from_aten(self, call: AtenCall) -> Reduce | None:
        name, x = calls.operator(call), calls.tensor(call, 0)
        if x is None or (name in {"max", "min"} and calls.tensor(call, 1) is not None):
            return None
        if name in _ATEN_ALONG:
            axes = _axes(calls.argument(call, 2 if name == "topk" else 1, "dim", -1), x)
            k = int(call.arguments[1]) if name == "topk" else 0
            return Reduce(op=name, shape=x.shape, axes=axes, k=k, dtype=x.dtype)
        op, axes_at, keep_at = _ATEN_OVER.get(name, name), 1, 2
        if name == _ATEN_NORM:
            order = calls.argument(call, 1, "ord", 2)
            if order not in {1, 2}:
                return None
            op, axes_at, keep_at = f"l{int(order)}", 2, 3
        elif name in _ATEN_SPREAD and calls.overload(call) == "dim":
            keep_at = 3
        axes = _axes(calls.argument(call, axes_at, "dim"), x)
        keep = bool(calls.argument(call, keep_at, "keepdim", False))
        return Reduce(op=op, shape=x.shape, axes=axes, keep=keep, dtype=x.dtype)

    def to_aten(self, p: Reduce) -> AtenCall | None:
        x = TensorSpec(p.shape, p.dtype)
        if p.op in _ATEN_ALONG:
            k = (p.k,) if p.op == "topk" else ()
            return calls.build(p.op, x, *k, p.axes[0], outputs=p.outputs)
        if p.op in {"l1", "l2"}:
            return calls.build(_ATEN_NORM, x, int(p.op[1]), p.axes, p.keep, outputs=p.outputs)
        if p.op in _ATEN_SPREAD:
            return calls.build(f"{p.op}.correction", x, p.axes, correction=1, keepdim=p.keep, outputs=p.outputs)
        if p.op in _TO_ATEN:
            return calls.build(_TO_ATEN[p.op], x, p.axes, p.keep, outputs=p.outputs)
        name = {"argmax": "argmax", "argmin": "argmin", "prod": "prod.dim_int"}.get(p.op)
        if name is None or len(p.axes) != 1:
            return None
        return calls.build(name, x, p.axes[0], p.keep, outputs=p.outputs)


def _axes(given: Any, x: TensorSpec) -> tuple[int, ...]:
    rank = len(x.shape)
    if given is None or given == ():
        return tuple(range(rank))
    listed = given if isinstance(given, tuple) else (given,)
    return tuple(sorted(int(axis) % rank for axis in listed)) if rank else ()


KIND = ReduceKind()
