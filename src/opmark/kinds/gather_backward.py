"""Gradients of lookups: each row of the gradient is added to the row that was looked up."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import code, scaled, size_bytes

# Append only: a learner's category codes are the places in this list.
OPERATIONS = ("embedding", "index-add", "index-put", "index-put-accumulate", "scatter-add")
_NAMES = frozenset({"embedding_dense_backward", "index_add", "index_add_", "index_put", "index_put_"})
_SCATTERS = frozenset({"scatter_add", "scatter_add_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherBackward:
    """`shape` is the table's shape, looked up along `axis`; `indices` is the shape of the index tensor.

    An `index-put` indexes `depth` axes by as many lists. `inplace` writes over the table; otherwise the kernel makes
    the table (embedding) or copies it first.
    """

    op: str
    shape: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int = 0
    depth: int = 1
    inplace: bool = False
    index_dtype: str = "int64"
    dtype: str = "float32"

    @property
    def updates(self) -> tuple[int, ...]:
        """Shape of the rows that are added."""
        if self.op == "scatter-add":
            return self.indices
        return (*self.shape[: self.axis], *self.indices, *self.shape[self.axis + self.depth :])


class GatherBackwardKind(Kind[GatherBackward]):
    """Gradient of a lookup."""

    name = "gather-backward"
    parameters = GatherBackward
    most_bytes = 128 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = _NAMES | _SCATTERS
    space = {
        "op": Choice(("embedding", "embedding", "embedding", *OPERATIONS[1:])),
        "batch": Choice((1, 2, 4, 8)),
        "length": Range(8, 1024),
        "rows": Range(64, 32768),
        "width": Range(8, 1024, 8),
        "inplace": Choice((False, True)),
    }

    def work(self, p: GatherBackward) -> Work:
        table, updates = size_bytes(p.shape, p.dtype), size_bytes(p.updates, p.dtype)
        lists = p.depth if p.op.startswith("index-put") else 1
        read = updates + lists * size_bytes(p.indices, p.index_dtype)
        if p.inplace:
            touched = min(table, updates)
            return Work(flops=math.prod(p.updates), read_bytes=read + touched, written_bytes=touched)
        return Work(
            flops=math.prod(p.updates),
            read_bytes=read + (0 if p.op == "embedding" else table),
            written_bytes=table,
        )

    def features(self, p: GatherBackward) -> dict[str, float]:
        return {
            "op": code(p.op, OPERATIONS),
            "table_elements": math.prod(p.shape),
            "rows": math.prod(p.shape[p.axis : p.axis + p.depth]),
            "inner": math.prod(p.shape[p.axis + p.depth :]),
            "places": math.prod(p.indices),
            "updates": math.prod(p.updates),
            "depth": p.depth,
            "inplace": float(p.inplace),
        }

    def shape_group(self, p: GatherBackward) -> str:
        return f"{p.op}-{p.indices}-{p.shape[p.axis]}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> GatherBackward | None:
        op, shape = values["op"], (values["rows"], values["width"])
        places: tuple[int, ...] = (values["batch"] * values["length"],)
        if op == "embedding":
            places = (values["batch"], values["length"])
        if op == "scatter-add":
            places = (values["length"], values["width"])
        inplace = values["inplace"] and op != "embedding"
        p = GatherBackward(op=op, shape=shape, indices=places, inplace=inplace, dtype=setting.dtype)
        return self.within_limits(p)

    def vary(self, p: GatherBackward, width: float, extent: float) -> GatherBackward:
        if p.op == "scatter-add":
            if len(p.shape) != 2 or len(p.indices) != 2:
                return p
            columns = (scaled(p.shape[1], width), scaled(p.indices[1], width))
            return replace(p, shape=(p.shape[0], columns[0]), indices=(scaled(p.indices[0], extent), columns[1]))
        places = (*p.indices[:-1], scaled(p.indices[-1], extent)) if p.indices else ()
        inner = p.shape[p.axis + p.depth :]
        wide = (*inner[:-1], scaled(inner[-1], width)) if inner else ()
        return replace(p, shape=(*p.shape[: p.axis + p.depth], *wide), indices=places)

    def from_aten(self, call: AtenCall) -> GatherBackward | None:
        name, first = calls.operator(call), calls.tensor(call, 0)
        if first is None:
            return None
        inplace, plain = name.endswith("_"), name.removesuffix("_")
        if plain == "embedding_dense_backward":
            places = calls.tensor(call, 1)
            if places is None:
                return None
            shape = (int(call.arguments[2]), first.shape[-1])
            return GatherBackward(
                op="embedding", shape=shape, indices=places.shape, index_dtype=places.dtype, dtype=first.dtype
            )
        if plain == "index_put":
            return _put(call, first, inplace=inplace)
        places, axis = calls.tensor(call, 2), int(call.arguments[1])
        if places is None or not first.shape:
            return None
        return GatherBackward(
            op="scatter-add" if plain == "scatter_add" else "index-add",
            shape=first.shape,
            indices=places.shape,
            axis=axis % len(first.shape),
            inplace=inplace,
            index_dtype=places.dtype,
            dtype=first.dtype,
        )

    def to_aten(self, p: GatherBackward) -> AtenCall | None:
        table, places = TensorSpec(p.shape, p.dtype), TensorSpec(p.indices, p.index_dtype)
        updates, tail = TensorSpec(p.updates, p.dtype), "_" if p.inplace else ""
        match p.op:
            case "embedding":
                return calls.build("embedding_dense_backward", updates, places, p.shape[0], -1, False, outputs=[table])
            case "index-add" | "scatter-add":
                name = p.op.replace("-", "_") + tail
                return calls.build(name, table, p.axis, places, updates, outputs=[table])
        lists = (*(None for _ in range(p.axis)), *(places for _ in range(p.depth)))
        accumulate = p.op.endswith("accumulate")
        return calls.build(f"index_put{tail}", table, lists, updates, accumulate, outputs=[table])


def _put(call: AtenCall, table: TensorSpec, *, inplace: bool) -> GatherBackward | None:
    lists, updates = call.arguments[1], calls.tensor(call, 2)
    given = [axis for axis, item in enumerate(lists) if isinstance(item, TensorSpec)]
    if updates is None or not given or given != list(range(given[0], given[-1] + 1)):
        return None
    shapes = {lists[axis].shape for axis in given}
    if len(shapes) > 1 or any(lists[axis].dtype == "bool" for axis in given):
        return None
    p = GatherBackward(
        op="index-put-accumulate" if calls.argument(call, 3, "accumulate", False) else "index-put",
        shape=table.shape,
        indices=shapes.pop(),
        axis=given[0],
        depth=len(given),
        inplace=inplace,
        index_dtype=lists[given[0]].dtype,
        dtype=table.dtype,
    )
    return p if p.updates == updates.shape else None


KIND = GatherBackwardKind()
