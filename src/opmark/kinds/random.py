"""Random numbers: noise, and the masks of dropout."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opmark.core.kernels.call import AtenCall
from opmark.core.kernels.kind import Choice, Kind, Range, Setting
from opmark.core.kernels.tensor import TensorSpec
from opmark.core.kernels.work import Work
from opmark.kinds._aten import calls
from opmark.kinds._shared.shapes import code, size_bytes, tensor_of_form, varied, without_channels

# By ATen name: the distribution. Calls given a shape make a tensor; the others fill or read one.
_DISTRIBUTIONS = {
    "bernoulli_": "bernoulli",
    "uniform_": "uniform",
    "normal_": "normal",
    "rand": "uniform",
    "randn": "normal",
    "rand_like": "uniform",
    "randn_like": "normal",
    "native_dropout": "dropout",
}
_NAMES = {"bernoulli": "bernoulli_", "uniform": "uniform_", "normal": "normal_", "dropout": "native_dropout"}
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "bernoulli": (0.9,),
    "uniform": (0.0, 1.0),
    "normal": (0.0, 1.0),
    "dropout": (0.1, True),
}
_OVERLOADS = {"bernoulli": ".float"}
# Append only: a learner's category codes are the places in this list.
OPERATIONS = tuple(_NAMES)
# FLOPs of one number: the generator, and the shaping of the distribution.
_FLOPS = {"bernoulli": 12, "uniform": 12, "normal": 40, "dropout": 15}


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomNumbers:
    """A tensor of `shape`; `dropout` applies its mask too and returns both."""

    op: str
    shape: tuple[int, ...]
    dtype: str = "float32"


class RandomNumbersKind(Kind[RandomNumbers]):
    """Random numbers."""

    name = "random"
    parameters = RandomNumbers
    most_bytes = 128 * 2**20
    categories = ("op",)
    languages = ("aten",)
    aten_ops = frozenset(_DISTRIBUTIONS)
    space = {
        "op": Choice(("bernoulli", "bernoulli", "bernoulli", "dropout", "uniform", "normal")),
        "form": Choice(("sequence", "sequence", "attention", "vector")),
        "batch": Choice((1, 2, 2, 4, 8)),
        "heads": Choice((1, 2, 4, 8, 12, 16)),
        "length": Range(8, 1024),
        "channels": Range(8, 4096, 8),
    }

    def work(self, p: RandomNumbers) -> Work:
        size, dropout = size_bytes(p.shape, p.dtype), p.op == "dropout"
        return Work(
            flops=_FLOPS[p.op] * math.prod(p.shape),
            read_bytes=size if dropout else 0,
            written_bytes=size + (size_bytes(p.shape, "bool") if dropout else 0),
        )

    def features(self, p: RandomNumbers) -> dict[str, float]:
        return {"op": code(p.op, OPERATIONS), "elements": math.prod(p.shape)}

    def shape_group(self, p: RandomNumbers) -> str:
        return f"{p.op}-{without_channels(p.shape)}"

    def draw(self, values: Mapping[str, Any], setting: Setting) -> RandomNumbers | None:
        sizes = (values[name] for name in ("form", "batch", "channels", "length", "heads"))
        shape = tensor_of_form(*sizes)
        p = RandomNumbers(op=values["op"], shape=shape, dtype=setting.dtype)
        return self.within_limits(p)

    def vary(self, p: RandomNumbers, width: float, extent: float) -> RandomNumbers:
        return replace(p, shape=varied(p.shape, width, extent))

    def from_aten(self, call: AtenCall) -> RandomNumbers | None:
        if not call.outputs or (calls.overload(call) == "Tensor"):
            return None
        result = call.outputs[0]
        return RandomNumbers(op=_DISTRIBUTIONS[calls.operator(call)], shape=result.shape, dtype=result.dtype)

    def to_aten(self, p: RandomNumbers) -> AtenCall | None:
        x = TensorSpec(p.shape, p.dtype)
        outputs = [x, TensorSpec(p.shape, "bool")] if p.op == "dropout" else [x]
        name = _NAMES[p.op] + _OVERLOADS.get(p.op, "")
        return calls.build(name, x, *_ARGUMENTS[p.op], outputs=outputs)


KIND = RandomNumbersKind()
