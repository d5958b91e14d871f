"""Reads and writes at places given by index tensors: embeddings, gathers of elements and slices, scatters."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall, OnnxNode, Operand
from opmark.core.kernels.kind import FLOATING, Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._onnx.nodes import build, constant, data, present, weight
from opmark.kinds._shared.shapes import EIGHT_BITS, code, scaled, size_bytes, varied, without_channels

_ONNX = {
    "gather": "Gather",
    "gather-elements": "GatherElements",
    "gather-nd": "GatherND",
    "scatter-elements": "ScatterElements",
    "scatter-nd": "ScatterND",
}
_FROM_ONNX = {name: op for op, name in _ONNX.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = (*_ONNX, "index-add", "index-put", "embedding-backward", "embedding-bag")
_MOST_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """`indices` is the shape of the index tensor along `axis`; `batch_axes` are shared by both (gather-nd).

    A `table` is a constant that is read; `single` is the constant index of a gather by a scalar.
    """

    op: str
    shape: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int = 0
    batch_axes: int = 0
    table: bool = False
    single: int | None = None
    index_dtype: str = "int64"
    dtype: str = "float32"

    @property
    def writes(self) -> bool:
        """True if the operation scatters."""
        return self.op in {"scatter-elements", "scatter-nd", "index-add", "index-put"}

    @property
    def updates(self) -> tuple[int, ...]:
        """Shape of the elements that are read, or written by a scatter."""
        if self.op in {"gather-elements", "scatter-elements"}:
            return self.indices
        if self.op in {"gather-nd", "scatter-nd"}:
            return self.indices[:-1] + self.shape[self.batch_axes + self.indices[-1] :]
        return self.shape[: self.axis] + self.indices + self.shape[self.axis + 1 :]

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.shape if self.writes else self.updates


class GatherKind(Kind[Gather]):
    """Gather and scatter."""

    name = "gather"
    parameters = Gather
    categories = ("op",)
    dtypes = FLOATING | {"int8"}
    onnx_ops = frozenset(_FROM_ONNX)
    aten_ops = frozenset({"embedding", "index_select", "gather", "scatter", "index"})
    space = {
        "op": Choice(("embedding", "embedding", "embedding", "gather", "gather-elements", "scatter-elements")),
        "rows": Range(2, 65536),
        "width": Range(8, 4096, 8),
        "batch": Choice((1, 1, 1, 2, 4, 8)),
        "length": Range(1, 1024),
    }

    def work(self, p: Gather) -> Work:
        moved = size_bytes(p.updates, p.dtype)
        index_bytes = size_bytes(p.indices, p.index_dtype)
        if p.writes:
            whole = size_bytes(p.shape, p.dtype)
            return Work(flops=0, read_bytes=whole + moved + index_bytes, written_bytes=whole + moved)
        return Work(flops=0, read_bytes=moved + index_bytes, written_bytes=moved, weight_bytes=moved if p.table else 0)

    def features(self, p: Gather) -> dict[str, float]:
        inner = math.prod(p.shape[p.axis + 1 :]) if p.op in {"gather", "index-add"} else 1
        return {
            "op": code(p.op, OPERATIONS),
            "places": math.prod(p.indices),
            "moved": math.prod(p.updates),
            "along": p.shape[p.axis] if p.shape else 1,
            "outer": math.prod(p.shape[: p.axis]),
            "inner": inner,
            "source_elements": math.prod(p.shape),
            "table": float(p.table),
            "single": float(p.single is not None),
        }

    def shape_group(self, p: Gather) -> str:
        return f"{p.op}-{p.indices}-{p.axis}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Gather | None:
        rows, width, batch, length = values["rows"], values["width"], values["batch"], values["length"]
        op = values["op"]
        if op == "embedding":
            p = Gather(op="gather", shape=(rows, width), indices=(batch, length), table=True, dtype=setting.dtype)
        elif op == "position-bias":
            # the bias of each pair of positions by their distance, for each head, as in LeViT
            places = min(length, 256)
            p = Gather(
                op="gather",
                shape=(2 * batch, places),
                indices=(places, places),
                axis=1,
                table=True,
                dtype=setting.dtype,
            )
        elif op == "gather":
            p = Gather(op=op, shape=(batch, length, width), indices=(), axis=1, single=0, dtype=setting.dtype)
        else:
            few = min(width, 256)
            p = Gather(op=op, shape=(batch, length, few), indices=(batch, length, few), axis=1, dtype=setting.dtype)
        if setting.language == "aten" and (p.single is not None or p.dtype in EIGHT_BITS):
            return None
        return p if size_bytes(p.shape, p.dtype) + self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: Gather, width: float, extent: float) -> Gather:
        if p.op == "gather":
            indices = (
                varied((1, *p.indices, 1), 1, extent)[1:-1]
                if len(p.indices) < 2
                else p.indices[:1] + tuple(scaled(n, extent) for n in p.indices[1:])
            )
            shape = tuple(n if axis <= p.axis else scaled(n, width) for axis, n in enumerate(p.shape))
            return replace(p, shape=shape, indices=indices)
        if p.op.endswith("elements") and p.shape == p.indices:
            shape = varied(p.shape, width, extent)
            return replace(p, shape=shape, indices=shape)
        return p

    def from_onnx(self, node: OnnxNode) -> Gather | None:
        op, x, places = _FROM_ONNX[node.op_type], present(node, 0), present(node, 1)
        if x is None or places is None or not x.spec.shape:
            return None
        if str(node.attributes.get("reduction", "none")) != "none":
            return None
        single = None
        if op == "gather" and places.constant and places.spec.elements == 1 and places.value is not None:
            single = int(places.value[0])
        nd = op in {"gather-nd", "scatter-nd"}
        axis = 0 if nd else int(node.attributes.get("axis", 0)) % len(x.spec.shape)
        return Gather(
            op=op,
            shape=x.spec.shape,
            indices=places.spec.shape,
            axis=axis,
            batch_axes=int(node.attributes.get("batch_dims", 0)) if nd else 0,
            table=x.constant,
            # Counted from the front.
            single=None if single is None else single % x.spec.shape[axis],
            index_dtype=places.spec.dtype,
            dtype=x.spec.dtype,
        )

    def to_onnx(self, p: Gather) -> OnnxNode | None:
        if p.op not in _ONNX:
            return None
        nd = p.op in {"gather-nd", "scatter-nd"}
        indexed = p.shape[p.batch_axes : p.batch_axes + p.indices[-1]] if nd else p.shape[p.axis : p.axis + 1]
        inputs: list[Operand | None] = [
            weight(p.shape, p.dtype) if p.table else data(p.shape, p.dtype),
            data(p.indices, p.index_dtype, limit=min(indexed))
            if p.single is None
            else constant((p.single,), p.index_dtype, p.indices),
        ]
        if p.writes:
            inputs.append(data(p.updates, p.dtype))
        attributes = {"batch_dims": p.batch_axes} if p.op == "gather-nd" else {} if nd else {"axis": p.axis}
        return build(_ONNX[p.op], inputs, [TensorSpec(p.output, p.dtype)], attributes)

    def from_aten(self, call: AtenCall) -> Gather | None:
        name, x = calls.operator(call), calls.tensor(call, 0)
        if x is None:
            return None
        if name == "index":
            return _indexed(call, x)
        places = calls.tensor(call, 1 if name == "embedding" else 2)
        if places is None or (name == "scatter" and calls.tensor(call, 3) is None):
            return None
        return Gather(
            op={"gather": "gather-elements", "scatter": "scatter-elements"}.get(name, "gather"),
            shape=x.shape,
            indices=places.shape,
            axis=0 if name == "embedding" else int(call.arguments[1]) % len(x.shape),
            table=calls.is_weight(call, 0),
            index_dtype=places.dtype,
            dtype=x.dtype,
        )

    def to_aten(self, p: Gather) -> AtenCall | None:
        x, places = TensorSpec(p.shape, p.dtype), TensorSpec(p.indices, p.index_dtype)
        result, weights = [TensorSpec(p.output, p.dtype)], (0,) if p.table else ()
        if p.single is not None:
            return None
        match p.op:
            case "gather" if p.axis == 0 and len(p.shape) == 2 and p.table:
                return calls.build("embedding", x, places, outputs=result, weights=weights)
            case "gather" if len(p.indices) == 1:
                return calls.build("index_select", x, p.axis, places, outputs=result, weights=weights)
            case "gather":
                lists = (*(None for _ in range(p.axis)), places)
                return calls.build("index.Tensor", x, lists, outputs=result, weights=weights)
            case "gather-nd" if p.batch_axes == 0:
                lists = (TensorSpec(p.indices[:-1], p.index_dtype),) * p.indices[-1]
                return calls.build("index.Tensor", x, lists, outputs=result, weights=weights)
            case "gather-elements":
                return calls.build("gather", x, p.axis, places, outputs=result, weights=weights)
            case "scatter-elements":
                updates = TensorSpec(p.updates, p.dtype)
                return calls.build("scatter.src", x, p.axis, places, updates, outputs=result, weights=weights)
        return None


def _indexed(call: AtenCall, x: TensorSpec) -> Gather | None:
    """The gather that indexing by lists amounts to; several lists over the first axes are one list of tuples."""
    lists = call.arguments[1]
    given = [axis for axis, item in enumerate(lists) if isinstance(item, TensorSpec)]
    if not given or any(lists[axis].dtype == "bool" for axis in given):
        return None
    op, axis, indices = "gather", given[0], lists[given[0]].shape
    if len(given) > 1:
        if given != list(range(len(given))):
            return None
        result, rest = call.outputs[0].shape, len(x.shape) - len(given)
        op, axis, indices = "gather-nd", 0, (*result[: len(result) - rest], len(given))
    return Gather(
        op=op,
        shape=x.shape,
        indices=indices,
        axis=axis,
        table=calls.is_weight(call, 0),
        index_dtype=lists[given[0]].dtype,
        dtype=x.dtype,
    )


KIND = GatherKind()
