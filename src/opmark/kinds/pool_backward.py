"""Gradients of pooling: spread over a window, or put where the maximum was."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from opmark.core.call import AtenCall
from opmark.core.kind import Choice, Kind, Setting
from opmark.core.tensor import TensorSpec
from opmark.core.work import Work
from opmark.kinds._aten import calls as _aten
from opmark.kinds._shared.shapes import code, size_bytes
from opmark.kinds.pool import KIND as POOL
from opmark.kinds.pool import Pool

_ATEN = {
    "max": "max_pool2d_with_indices_backward",
    "average": "avg_pool2d_backward",
    "adaptive-average": "_adaptive_avg_pool2d_backward",
    "adaptive-max": "adaptive_max_pool2d_backward",
}
_FROM_ATEN = {name: op for op, name in _ATEN.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_ATEN)
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBackward:
    """Of the pooling with these sizes; `pads` has one entry per axis, the same on both sides."""

    op: str
    batch: int
    channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    ceil: bool = False
    count_pads: bool = False
    dtype: str = "float32"

    @property
    def forward(self) -> Pool:
        """The pooling whose gradient this is."""
        return Pool(**(asdict(self) | {"pads": self.pads * 2}))


class PoolBackwardKind(Kind[PoolBackward]):
    """Gradient of pooling."""

    name = "pool-backward"
    parameters = PoolBackward
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset(_FROM_ATEN)
    space = {
        **{name: axis for name, axis in POOL.space.items() if name not in {"op", "layout", "dilatable"}},
        "op": Choice(("max", "max", "average", "adaptive-average")),
    }

    def work(self, p: PoolBackward) -> Work:
        result = p.forward.output
        window = 1 if "max" in p.op else math.prod(p.kernel)
        places = size_bytes(result, "int64") if "max" in p.op else 0
        return Work(
            flops=math.prod(result) * window,
            # Of the input only the shape is looked at.
            read_bytes=size_bytes(result, p.dtype) + places,
            written_bytes=size_bytes((p.batch, p.channels, *p.size), p.dtype),
        )

    def features(self, p: PoolBackward) -> dict[str, float]:
        return {
            "op": code(p.op, OPERATIONS),
            "batch": p.batch,
            "channels": p.channels,
            "height": p.size[0],
            "width": p.size[-1],
            "output_elements": math.prod(p.forward.output),
            "window": math.prod(p.kernel),
            "stride": max(p.stride),
            "padded": float(any(p.pads)),
            "count_pads": float(p.count_pads),
        }

    def shape_group(self, p: PoolBackward) -> str:
        return f"{p.op}-{p.batch}-{p.size}-{p.kernel}-{p.stride}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> PoolBackward | None:
        size, kernel, op = values["size"], values["kernel"], values["op"]
        if kernel > size:
            return None
        adaptive = op.startswith("adaptive")
        stride = kernel if adaptive else values["stride"]
        if adaptive and size % kernel:
            return None
        pad = (kernel - 1) // 2 if values["padding"] == "same" and not adaptive else 0
        p = PoolBackward(
            op=op,
            batch=values["batch"],
            channels=values["channels"],
            size=(size, size),
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pads=(pad, pad),
            count_pads=bool(op == "average" and pad),
            dtype=setting.dtype,
        )
        return p if self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: PoolBackward, width: float, extent: float) -> PoolBackward:
        after = POOL.vary(p.forward, width, extent)
        if p.op.startswith("adaptive"):
            return replace(p, channels=after.channels)
        return replace(p, channels=after.channels, size=after.size)

    def from_aten(self, call: AtenCall) -> PoolBackward | None:
        op, gradient, x = _FROM_ATEN[_aten.operator(call)], _aten.tensor(call, 0), _aten.tensor(call, 1)
        if gradient is None or x is None or len(x.shape) != 4:
            return None
        batch, channels, *rest = x.shape
        size = tuple(rest)
        fields: dict[str, Any] = {"op": op, "batch": batch, "channels": channels, "size": size, "dtype": x.dtype}
        if op.startswith("adaptive"):
            wanted = gradient.shape[2:]
            stride = tuple(n // m for n, m in zip(size, wanted, strict=True))
            if min(stride) < 1:
                return None
            kernel = tuple(n - (m - 1) * s for n, m, s in zip(size, wanted, stride, strict=True))
            return PoolBackward(**fields, kernel=kernel, stride=stride)
        kernel = _aten.each(call.arguments[2], 2)
        stride, pads = _aten.each(call.arguments[3] or kernel, 2), _aten.each(call.arguments[4], 2)
        # A window larger than the image saw all of it once.
        whole = tuple(n + 2 * pad for n, pad in zip(size, pads, strict=True))
        stride = tuple(1 if k > n else s for k, n, s in zip(kernel, whole, stride, strict=True))
        kernel = tuple(min(k, n) for k, n in zip(kernel, whole, strict=True))
        fields |= {"kernel": kernel, "stride": stride, "pads": pads}
        if op == "average":
            ceil, count = call.arguments[5:7]
            return PoolBackward(**fields, ceil=bool(ceil), count_pads=bool(count and any(pads)))
        return PoolBackward(**fields, dilation=_aten.each(call.arguments[5], 2), ceil=bool(call.arguments[6]))

    def to_aten(self, p: PoolBackward) -> AtenCall | None:
        result, x = TensorSpec(p.forward.output, p.dtype), TensorSpec((p.batch, p.channels, *p.size), p.dtype)
        places, window = TensorSpec(result.shape, "int64"), (p.kernel, p.stride, p.pads)
        arguments: tuple[Any, ...] = {
            "max": (*window, p.dilation, p.ceil, places),
            "average": (*window, p.ceil, p.count_pads, None),
            "adaptive-average": (),
            "adaptive-max": (places,),
        }[p.op]
        return _aten.build(_ATEN[p.op], result, x, *arguments, outputs=[x])


KIND = PoolBackwardKind()
