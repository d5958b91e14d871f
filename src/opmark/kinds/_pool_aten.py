"""ATen's spelling of pooling."""

from typing import TYPE_CHECKING, Any

from opmark.core.call import AtenCall
from opmark.core.tensor import TensorSpec
from opmark.kinds._aten import calls as _aten

if TYPE_CHECKING:
    from opmark.kinds.pool import Pool

NAMES = frozenset({"max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d"})


def read(call: AtenCall) -> dict[str, Any] | None:
    """The fields of a `Pool`, or None where a form is not covered."""
    name, x = _aten.operator(call), _aten.tensor(call, 0)
    if x is None or len(x.shape) != 4:
        return None
    size = x.shape[2:]
    fields: dict[str, Any] = {
        "batch": x.shape[0],
        "channels": x.shape[1],
        "size": size,
        "dilation": (1, 1),
        "dtype": x.dtype,
    }
    if "adaptive" in name:
        wanted = _aten.each(call.arguments[1], 2)
        stride = tuple(n // m for n, m in zip(size, wanted, strict=True))
        if min(stride) < 1:
            return None
        # Windows of unequal sizes: the largest one that steps evenly stands for them.
        kernel = tuple(n - (m - 1) * s for n, m, s in zip(size, wanted, stride, strict=True))
        largest = name == "adaptive_max_pool2d"
        op = "adaptive-max" if largest else "adaptive-average"
        return fields | {"op": op, "kernel": kernel, "stride": stride, "pads": (0,) * 4, "indices": largest}
    kernel = _aten.each(call.arguments[1], 2)
    stride = _aten.each(_aten.argument(call, 2, "stride", ()) or kernel, 2)
    pads = _aten.each(_aten.argument(call, 3, "padding", 0), 2) * 2
    # A window larger than the image sees all of it once.
    whole = tuple(n + 2 * pad for n, pad in zip(size, pads, strict=False))
    stride = tuple(1 if k > n else s for k, n, s in zip(kernel, whole, stride, strict=True))
    kernel = tuple(min(k, n) for k, n in zip(kernel, whole, strict=True))
    fields |= {"kernel": kernel, "stride": stride, "pads": pads}
    if name == "avg_pool2d":
        ceil, count = _aten.argument(call, 4, "ceil_mode", False), _aten.argument(call, 5, "count_include_pad", True)
        # Without padding there is nothing to count.
        return fields | {"op": "average", "ceil": bool(ceil), "count_pads": bool(count and any(pads))}
    dilation = _aten.each(_aten.argument(call, 4, "dilation", 1), 2)
    ceil = bool(_aten.argument(call, 5, "ceil_mode", False))
    return fields | {"op": "max", "dilation": dilation, "ceil": ceil, "indices": True}


def write(p: "Pool") -> AtenCall | None:
    """The call, or None where torch has no such kernel."""
    axes = len(p.size)
    if (
        p.block
        or axes != 2
        or p.pads[:axes] != p.pads[axes:]
        or any(2 * pad > k for pad, k in zip(p.pads[:axes], p.kernel, strict=True))
    ):
        return None
    x, result = TensorSpec((p.batch, p.channels, *p.size), p.dtype), TensorSpec(p.output, p.dtype)
    places = TensorSpec(p.output, "int64")
    window = (p.kernel, p.stride, p.pads[:axes])
    match p.op:
        case "max":
            return _aten.build("max_pool2d_with_indices", x, *window, p.dilation, p.ceil, outputs=[result, places])
        case "average":
            return _aten.build("avg_pool2d", x, *window, p.ceil, p.count_pads, outputs=[result])
        case "adaptive-average":
            return _aten.build("_adaptive_avg_pool2d", x, p.output[2:], outputs=[result])
        case "adaptive-max" | "global-max":
            return _aten.build("adaptive_max_pool2d", x, p.output[2:], outputs=[result, places])
        case "global-average":
            # What torch makes of an adaptive average of one position.
            return _aten.build("mean.dim", x, (2, 3), True, outputs=[result])
    return None
