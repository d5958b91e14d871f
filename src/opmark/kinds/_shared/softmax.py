"""Softmax as forward and backward kernels share it: sizes, sampling space, features."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opmark.core.kernels.kind import Axis, Choice, Range
from opmark.kinds._shared.shapes import Shape, without_channels

SPACE: dict[str, Axis] = {
    "form": Choice(("attention", "attention", "logits", "image")),
    "batch": Choice((1, 1, 1, 2, 4, 8)),
    "heads": Choice((1, 4, 8, 12, 16, 32)),
    "length": Range(8, 1024),
    "classes": Range(10, 65536),
    "log": Choice((False, False, False, True)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxSizes:
    """`axis` is counted from the front; `log` takes the logarithm of the result."""

    shape: tuple[int, ...]
    axis: int
    log: bool = False
    dtype: str = "float32"


def features(p: SoftmaxSizes) -> dict[str, float]:
    """The features that forward and backward kernels share."""
    return {
        "outer": math.prod(p.shape[: p.axis]),
        "along": p.shape[p.axis],
        "inner": math.prod(p.shape[p.axis + 1 :]),
        "log": float(p.log),
    }


def shape_group(p: SoftmaxSizes) -> str:
    """The shape group of a kernel."""
    return f"last-{p.shape[-1]}" if p.axis == len(p.shape) - 1 else f"{p.axis}-{without_channels(p.shape)}"


def drawn_shape(values: Mapping[str, Any]) -> tuple[Shape, int]:
    """Shape and axis at a point of `SPACE`."""
    batch, length = values["batch"], values["length"]
    return {
        "attention": ((batch, values["heads"], length, length), 3),
        "logits": ((batch * values["heads"], values["classes"]), 1),
        "image": ((batch, min(values["classes"], 256), min(length, 128), min(length, 128)), 1),
    }[values["form"]]
