"""Optimiser steps over many parameters in one call: fused steps, and one operation over lists of tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import code, scaled, size_bytes

# By operation: ATen name with overload, lists of tensors (the first is written), numbers, FLOPs per element.
_FOREACH: dict[str, tuple[str, int, tuple[Any, ...], int]] = {
    "add-scalar": ("_foreach_add_.Scalar", 1, (1.0,), 1),
    "add": ("_foreach_add_.List", 2, (), 2),
    "mul-scalar": ("_foreach_mul_.Scalar", 1, (0.999,), 1),
    "mul": ("_foreach_mul_.List", 2, (), 1),
    "div-scalar": ("_foreach_div_.Scalar", 1, (1.001,), 4),
    "lerp": ("_foreach_lerp_.Scalar", 2, (0.1,), 3),
    "addcmul": ("_foreach_addcmul_.Scalar", 3, (0.001,), 3),
    "addcdiv": ("_foreach_addcdiv_.Scalar", 3, (0.001,), 6),
}
_SCALAR_LISTS = {
    "_foreach_add_.ScalarList": "add-scalar",
    "_foreach_mul_.ScalarList": "mul-scalar",
    "_foreach_div_.ScalarList": "div-scalar",
    "_foreach_lerp_.ScalarList": "lerp",
    "_foreach_addcmul_.ScalarList": "addcmul",
    "_foreach_addcdiv_.ScalarList": "addcdiv",
}
_FROM_FOREACH = {name: op for op, (name, *_) in _FOREACH.items()} | _SCALAR_LISTS
_FUSED = {"_fused_sgd_": "sgd", "_fused_adam_": "adam", "_fused_adamw_": "adamw"}
# Tensors read and written per parameter, and FLOPs per element.
_STEPS = {"sgd": (2, 1, 2), "sgd-momentum": (3, 2, 4), "adam": (4, 3, 16), "adamw": (4, 3, 16)}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = (*_FOREACH, *_STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """`tensors` parameters with `elements` elements in all, spread as evenly as possible."""

    op: str
    tensors: int
    elements: int
    dtype: str = "float32"

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """One shape per parameter."""
        each, rest = divmod(self.elements, self.tensors)
        return tuple((each + (index < rest),) for index in range(self.tensors))


class UpdateKind(Kind[Update]):
    """Optimiser step over many parameters."""

    name = "update"
    parameters = Update
    most_bytes = 256 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset({*(name.partition(".")[0] for name in _FROM_FOREACH), *_FUSED})
    space = {
        "op": Choice(("adamw", "adamw", "adamw", "sgd", "sgd-momentum", "sgd-momentum", "adam", *_FOREACH)),
        "tensors": Choice((1, 1, 2, 4, 8, 16, 32, 64, 128)),
        "elements": Range(256, 2**23),
    }

    def work(self, p: Update) -> Work:
        size = size_bytes((p.elements,), p.dtype)
        if p.op in _STEPS:
            read, written, flops = _STEPS[p.op]
            # Adam keeps a step count per parameter.
            counts = size_bytes((p.tensors,), "float32") if p.op.startswith("adam") else 0
            return Work(flops=flops * p.elements, read_bytes=read * size + counts, written_bytes=written * size)
        _, lists, _, flops = _FOREACH[p.op]
        return Work(flops=flops * p.elements, read_bytes=lists * size, written_bytes=size)

    def features(self, p: Update) -> dict[str, float]:
        return {
            "op": code(p.op, OPERATIONS),
            "tensors": p.tensors,
            "elements": p.elements,
            "elements_each": p.elements / p.tensors,
        }

    def shape_group(self, p: Update) -> str:
        return f"{p.op}-{p.tensors}-{p.elements.bit_length()}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> Update | None:
        tensors, elements = values["tensors"], values["elements"]
        p = Update(op=values["op"], tensors=tensors, elements=elements, dtype=setting.dtype)
        return self.within_limits(p) if elements >= 16 * tensors else None

    def vary(self, p: Update, width: float, extent: float) -> Update:
        return replace(p, elements=max(p.tensors, scaled(p.elements, width * extent)))

    def from_aten(self, call: AtenCall) -> Update | None:
        first = call.arguments[0]
        if not first or not isinstance(first, tuple):
            return None
        name = calls.operator(call)
        op = _FUSED.get(name) or _FROM_FOREACH.get(call.op)
        if op is None or len({spec.dtype for spec in first}) > 1 or call.op.endswith(".tensor_lr"):
            return None
        if op == "sgd" and call.keywords.get("momentum"):
            op = "sgd-momentum"
        elements = sum(spec.elements for spec in first)
        return Update(op=op, tensors=len(first), elements=elements, dtype=first[0].dtype) if elements else None

    def to_aten(self, p: Update) -> AtenCall | None:
        specs = tuple(TensorSpec(shape, p.dtype) for shape in p.shapes)
        if p.op in _FOREACH:
            name, lists, numbers, _ = _FOREACH[p.op]
            return calls.build(name, *(specs for _ in range(lists)), *numbers, outputs=specs)
        if p.op.startswith("sgd"):
            momentum = 0.9 if p.op == "sgd-momentum" else 0.0
            return calls.build(
                "_fused_sgd_", specs, specs, specs if momentum else (), outputs=specs, weight_decay=0.0,
                momentum=momentum, lr=0.001, dampening=0.0, nesterov=False, maximize=False, is_first_step=False,
            )  # fmt: skip
        counts = tuple(TensorSpec((), "float32") for _ in specs)
        return calls.build(
            f"_fused_{p.op}_", specs, specs, specs, specs, (), counts, outputs=specs, lr=0.001, beta1=0.9,
            beta2=0.999, weight_decay=0.01, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip


KIND = UpdateKind()
