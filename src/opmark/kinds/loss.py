"""Training losses and their gradients: negative log-likelihood, squared error, smooth L1, logistic."""

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

_NLL = {"nll_loss_forward": "nll", "nll_loss2d_forward": "nll"}
_NLL_BACKWARD = {"nll_loss_backward": "nll-backward", "nll_loss2d_backward": "nll-backward"}
_PAIRS = {
    "mse_loss": "mse",
    "mse_loss_backward": "mse-backward",
    "binary_cross_entropy": "logistic",
    "binary_cross_entropy_backward": "logistic-backward",
    "smooth_l1_loss": "smooth-l1",
    "smooth_l1_loss_backward": "smooth-l1-backward",
}
_NAMES = {op: name for name, op in _PAIRS.items()}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = ("nll", "nll-backward", *_NAMES)
_FLOPS = {
    "mse": 3, "mse-backward": 3, "logistic": 20, "logistic-backward": 8, "smooth-l1": 6, "smooth-l1-backward": 4,
}  # fmt: skip
_MEAN = 1
_IGNORED = -100
_MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """`shape` is the scores' shape, classes on axis 1; every loss is reduced to its mean.

    An elementwise loss takes a target of the same shape, the others a class per row.
    """

    op: str
    shape: tuple[int, ...]
    index_dtype: str = "int64"
    dtype: str = "float32"

    @property
    def classified(self) -> bool:
        """True if targets are classes."""
        return self.op.startswith("nll")

    @property
    def targets(self) -> tuple[int, ...]:
        """Shape of the targets."""
        return (self.shape[0], *self.shape[2:]) if self.classified else self.shape


class LossKind(Kind[Loss]):
    """Loss."""

    name = "loss"
    parameters = Loss
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset({*_NLL, *_NLL_BACKWARD, *_PAIRS})
    space = {
        "op": Choice(("nll", "nll", "nll-backward", "nll-backward", "mse", "mse-backward", "smooth-l1-backward")),
        "rows": Range(1, 8192),
        "classes": Range(2, 65536),
    }

    def work(self, p: Loss) -> Work:
        size, rows, item = size_bytes(p.shape, p.dtype), math.prod(p.targets), size_bytes((1,), p.dtype)
        if p.op == "nll":
            return Work(flops=2 * rows, read_bytes=rows * (item + size_bytes((1,), p.index_dtype)), written_bytes=item)
        if p.op == "nll-backward":
            # Zeros everywhere, and one number in each row.
            return Work(flops=rows, read_bytes=size_bytes(p.targets, p.index_dtype), written_bytes=size)
        backward = p.op.endswith("backward")
        return Work(
            flops=_FLOPS[p.op] * math.prod(p.shape), read_bytes=2 * size, written_bytes=size if backward else item
        )

    def features(self, p: Loss) -> dict[str, float]:
        return {
            "op": code(p.op, OPERATIONS),
            "elements": math.prod(p.shape),
            "rows": math.prod(p.targets),
            "classes": p.shape[1] if p.classified else 1,
        }

    def shape_group(self, p: Loss) -> str:
        return f"{p.op}-{p.shape[0]}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Loss | None:
        p = Loss(op=values["op"], shape=(values["rows"], values["classes"]), dtype=setting.dtype)
        return p if size_bytes(p.shape, p.dtype) + self.work(p).moved_bytes <= _MOST_BYTES else None

    def vary(self, p: Loss, width: float, extent: float) -> Loss:
        rows, *rest = p.shape
        if not rest:
            return replace(p, shape=(scaled(rows, extent),))
        return replace(p, shape=(scaled(rows, extent), scaled(rest[0], width), *rest[1:]))

    def from_aten(self, call: AtenCall) -> Loss | None:
        name = calls.operator(call)
        backward = name.endswith("backward")
        first = 1 if backward else 0
        scores, targets = calls.tensor(call, first), calls.tensor(call, first + 1)
        if scores is None or targets is None:
            return None
        if name in _PAIRS:
            at = 3 if name.startswith("binary") and not backward else first + 2 + name.startswith("binary") * backward
            if calls.argument(call, at, "reduction", _MEAN) != _MEAN or targets.shape != scores.shape:
                return None
            return Loss(op=_PAIRS[name], shape=scores.shape, dtype=scores.dtype)
        weighted = calls.tensor(call, first + 2) is not None
        if weighted or len(scores.shape) < 2 or call.arguments[first + 3] != _MEAN:
            return None
        op = (_NLL | _NLL_BACKWARD)[name]
        return Loss(op=op, shape=scores.shape, index_dtype=targets.dtype, dtype=scores.dtype)

    def to_aten(self, p: Loss) -> AtenCall | None:
        scores, number = TensorSpec(p.shape, p.dtype), TensorSpec((), p.dtype)
        targets = TensorSpec(p.targets, p.index_dtype if p.classified else p.dtype)
        if p.classified:
            name = "nll_loss2d" if len(p.shape) > 2 else "nll_loss"
            if p.op == "nll":
                arguments: tuple[Any, ...] = (scores, targets, None, _MEAN, _IGNORED)
                return calls.build(f"{name}_forward", *arguments, outputs=[number, number])
            arguments = (number, scores, targets, None, _MEAN, _IGNORED, number)
            return calls.build(f"{name}_backward", *arguments, outputs=[scores])
        name = _NAMES[p.op]
        weight = (None,) if p.op.startswith("logistic") else ()
        bend = (1.0,) if p.op.startswith("smooth") else ()
        if p.op.endswith("backward"):
            return calls.build(name, number, scores, targets, *weight, _MEAN, *bend, outputs=[scores])
        return calls.build(name, scores, targets, *weight, _MEAN, *bend, outputs=[number])


KIND = LossKind()
