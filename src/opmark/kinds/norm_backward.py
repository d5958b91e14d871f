"""Gradients of a normalisation in one call: of its input, its scale and its shift, as requested."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import code, size_bytes, varied_groups, without_channels

# Append only: a learner's category codes are the places in this list.
OPERATIONS = ("batch-training", "batch", "layer", "group", "rms")
_FLOPS = {"batch-training": 11, "batch": 5, "layer": 14, "group": 12, "rms": 11}
_ATEN = {
    "native_batch_norm_backward": "batch",
    "native_layer_norm_backward": "layer",
    "native_group_norm_backward": "group",
    "_fused_rms_norm_backward": "rms",
}
_EPSILON = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class NormBackward:
    """`axis` is the first normalised axis (layer, rms), `groups` belong to group normalisation.

    `scale` is a per-channel factor; the three gradients are those of input, factor and shift.
    `statistics` is the element type of the forward pass's means and deviations, `constants` that of
    the factors.
    """

    op: str
    shape: tuple[int, ...]
    axis: int = 1
    groups: int = 1
    scale: bool = True
    input_gradient: bool = True
    scale_gradient: bool = True
    shift_gradient: bool = True
    statistics: str = "float32"
    constants: str = "float32"
    dtype: str = "float32"

    @property
    def vector(self) -> tuple[int, ...]:
        """Shape of the per-channel constants."""
        return self.shape[self.axis :] if self.op in {"layer", "rms"} else self.shape[1:2]

    @property
    def rows(self) -> tuple[int, ...]:
        """Shape of the means."""
        if self.op in {"layer", "rms"}:
            return (*self.shape[: self.axis], *(1 for _ in self.shape[self.axis :]))
        return (self.shape[0], self.groups) if self.op == "group" else self.vector

    @property
    def mask(self) -> tuple[bool, ...]:
        """The gradients that are requested."""
        return (self.input_gradient, self.scale_gradient, self.shift_gradient)[: 2 if self.op == "rms" else 3]


class NormBackwardKind(Kind[NormBackward]):
    """Gradients of a normalisation."""

    name = "norm-backward"
    parameters = NormBackward
    most_bytes = 128 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset(_ATEN)
    space = {
        "op": Choice(("layer", "layer", "batch-training", "batch-training", "batch", "group")),
        "batch": Choice((1, 2, 2, 4, 8, 16)),
        "length": Range(1, 1024),
        "size": Range(4, 112),
        "channels": Range(32, 4096, 8),
        "groups": Choice((8, 16, 32)),
    }

    def work(self, p: NormBackward) -> Work:
        size, vector, rows = size_bytes(p.shape, p.dtype), math.prod(p.vector), math.prod(p.rows)
        weight_bytes = size_bytes((vector * p.scale,), p.constants)
        statistics = size_bytes((rows * (1 if p.op == "rms" else 2),), p.statistics)
        return Work(
            flops=math.prod(p.shape) * _FLOPS[p.op],
            read_bytes=2 * size + weight_bytes + statistics,
            written_bytes=size * p.input_gradient
            + size_bytes((vector * (p.scale_gradient + p.shift_gradient),), p.constants),
            weight_bytes=weight_bytes,
        )

    def features(self, p: NormBackward) -> dict[str, float]:
        axis = p.axis if p.op in {"layer", "rms"} else min(2, len(p.shape))
        return {
            "op": code(p.op, OPERATIONS),
            "rows": math.prod(p.shape[:axis]),
            "columns": math.prod(p.shape[axis:]),
            "channels": math.prod(p.vector),
            "groups": p.groups,
            "scale": float(p.scale),
            "input_gradient": float(p.input_gradient),
            "constant_gradients": p.scale_gradient + p.shift_gradient,
        }

    def shape_group(self, p: NormBackward) -> str:
        return f"{p.op}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> NormBackward | None:
        op, batch, channels, size = values["op"], values["batch"], values["channels"], values["size"]
        if op == "group" and channels % values["groups"]:
            return None
        p = NormBackward(
            op=op,
            shape=(batch, values["length"], channels) if op == "layer" else (batch, channels, size, size),
            axis=2 if op == "layer" else 1,
            groups=values["groups"] if op == "group" else 1,
            # A processor refuses means of another type than the constants.
            statistics=setting.dtype,
            constants=setting.dtype,
            dtype=setting.dtype,
        )
        # One value per channel has no deviation.
        if op == "batch-training" and batch * size * size < 2:
            return None
        return self.within_limits(p)

    def vary(self, p: NormBackward, width: float, extent: float) -> NormBackward:
        return replace(p, shape=varied_groups(p.shape, width, extent, p.groups))

    def from_aten(self, call: AtenCall) -> NormBackward | None:
        op, x = _ATEN[calls.operator(call)], calls.tensor(call, 1)
        if x is None:
            return None
        mask = tuple(bool(asked) for asked in call.arguments[-1])
        at, mean = {"batch": (2, 5), "layer": (5, 3), "group": (4, 2), "rms": (4, 3)}[op]
        scale, statistics = calls.tensor(call, at), calls.tensor(call, mean)
        if op == "batch" and call.arguments[7]:
            op = "batch-training"
        if op == "batch":
            statistics = calls.tensor(call, 3)
        return NormBackward(
            op=op,
            shape=x.shape,
            axis=len(x.shape) - len(call.arguments[2]) if op in {"layer", "rms"} else 1,
            groups=int(call.arguments[8]) if op == "group" else 1,
            scale=scale is not None,
            input_gradient=mask[0],
            scale_gradient=mask[1],
            shift_gradient=len(mask) > 2 and mask[2],
            statistics=statistics.dtype if statistics else x.dtype,
            constants=scale.dtype if scale else x.dtype,
            dtype=x.dtype,
        )

    def to_aten(self, p: NormBackward) -> AtenCall | None:
        x, vector, rows = (
            TensorSpec(p.shape, p.dtype),
            TensorSpec(p.vector, p.constants),
            TensorSpec(p.rows, p.statistics),
        )
        scale, normalized = (vector if p.scale else None), p.shape[p.axis :]
        weight: tuple[int, ...] = (4,) if p.scale else ()
        outputs = [spec for spec, asked in zip((x, vector, vector), (*p.mask, False), strict=False) if asked]
        match p.op:
            case "layer":
                # The shift is given only to request its gradient.
                shift = vector if p.shift_gradient else None
                arguments: tuple[Any, ...] = (x, x, normalized, rows, rows, scale, shift, p.mask)
            case "rms":
                arguments = (x, x, normalized, rows, scale, p.mask)
                weight = (3,) if p.scale else ()
            case "group":
                batch, channels = p.shape[:2]
                arguments = (x, x, rows, rows, scale, batch, channels, math.prod(p.shape[2:]), p.groups, p.mask)
            case _:
                training = p.op == "batch-training"
                running, saved = TensorSpec(p.vector, p.constants), rows if training else None
                running = running if training else rows
                arguments = (x, x, scale, running, running, saved, saved, training, _EPSILON, p.mask)
                weight = (2, 3, 4) if p.scale else (2, 3)
        name = next(name for name, op in _ATEN.items() if op == p.op.removesuffix("-training"))
        return calls.build(name, *arguments, outputs=outputs, weights=weight)


KIND = NormBackwardKind()
