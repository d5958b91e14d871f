"""ATen's spelling of gathers and scatters."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.gather import Gather

NAMES = frozenset({"embedding", "index_select", "gather", "scatter", "index"})


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Gather`, or None where a form is not covered."""
    name, x = _aten.operator(call), _aten.tensor(call, 0)
    if x is None:
        return None
    fields: dict[str, Any] = {"shape": x.shape, "dtype": x.dtype, "table": _aten.is_weight(call, 0)}
    if name == "index":
        return _index(call, x, fields)
    places = _aten.tensor(call, 1 if name == "embedding" else 2)
    if places is None or (name == "scatter" and _aten.tensor(call, 3) is None):
        return None
    axis = 0 if name == "embedding" else int(call.arguments[1]) % len(x.shape)
    op = {"gather": "gather-elements", "scatter": "scatter-elements"}.get(name, "gather")
    return fields | {"op": op, "indices": places.shape, "axis": axis, "index_dtype": places.dtype}


def write(p: "Gather") -> AtenCall | None:
    """The call, or None where torch has no such operation."""
    x, places = TensorSpec(p.shape, p.dtype), TensorSpec(p.indices, p.index_dtype)
    result, weights = [TensorSpec(p.output, p.dtype)], (0,) if p.table else ()
    if p.single is not None:
        return None
    match p.op:
        case "gather" if p.axis == 0 and len(p.shape) == 2 and p.table:
            return _aten.build("embedding", x, places, outputs=result, weights=weights)
        case "gather" if len(p.indices) == 1:
            return _aten.build("index_select", x, p.axis, places, outputs=result, weights=weights)
        case "gather":
            lists = (*(None for _ in range(p.axis)), places)
            return _aten.build("index.Tensor", x, lists, outputs=result, weights=weights)
        case "gather-nd" if p.batch_axes == 0:
            lists = (TensorSpec(p.indices[:-1], p.index_dtype),) * p.indices[-1]
            return _aten.build("index.Tensor", x, lists, outputs=result, weights=weights)
        case "gather-elements":
            return _aten.build("gather", x, p.axis, places, outputs=result, weights=weights)
        case "scatter-elements":
            updates = TensorSpec(p.updates, p.dtype)
            return _aten.build("scatter.src", x, p.axis, places, updates, outputs=result, weights=weights)
    return None


def _index(call: AtenCall, x: TensorSpec, fields: dict[str, Any]) -> dict[str, Any] | None:
    lists = call.arguments[1]
    given = [axis for axis, item in enumerate(lists) if isinstance(item, TensorSpec)]
    if not given or any(lists[axis].dtype == "bool" for axis in given):
        return None
    fields |= {"index_dtype": lists[given[0]].dtype}
    if len(given) == 1:
        return fields | {"op": "gather", "indices": lists[given[0]].shape, "axis": given[0]}
    if given != list(range(len(given))):
        return None
    # Several lists over the first axes are one list of tuples.
    depth = len(given)
    rest = len(x.shape) - depth
    result = call.outputs[0].shape
    return fields | {"op": "gather-nd", "indices": (*result[: len(result) - rest], depth)}
