"""Switches of a kernel: which of two codes it may run, told by its sizes and layout alone.

Whether a runtime has two codes is for rows to show (`learners.by_switch`).
"""

from collections.abc import Callable, Mapping

import numpy as np

from opmark.core.kernels.tensor import DTYPE_BYTES
from opmark.kinds._libraries.onednn import is_too_small
from opmark.predictors.inputs.arrays import Flags, Integers
from opmark.predictors.inputs.features import Inputs

_Rule = Callable[[Inputs], Flags]

_FLOAT32 = list(DTYPE_BYTES).index("float32")
_PATH_COLUMNS = (
    *("batch", "channels_in", "height", "width", "kernel_height", "kernel_width"),
    *("stride", "dilation", "groups"),
)


def switches(inputs: Inputs) -> dict[str, Flags]:
    """Every switch of the kind, with the kernels that it is on for."""
    return {
        name: rule(inputs)
        for name, (columns, rule) in _RULES.items()
        if all(column in inputs.raw for column in columns)
    }


def switched(inputs: Inputs, name: str) -> Flags:
    """Mark the kernels that the switch `name` is on for. Raises `ValueError` for one that the kind does not have."""
    columns, rule = _RULES.get(name, ((name,), None))
    if rule is None or any(wanted not in inputs.raw for wanted in columns):
        raise ValueError(f"{inputs.kind} has no switch {name!r}")
    return rule(inputs)


def element_types(inputs: Inputs) -> Integers:
    """Look up the code of each kernel's element type."""
    codes: Integers = inputs.matrix[:, inputs.names.index("dtype_code")].astype(np.int64)
    return codes


def _without_onednn(inputs: Inputs) -> Flags:
    """Mark 32-bit convolutions that PyTorch computes on one thread with column matrices and its own product.

    Latency jumps up to tenfold at the thresholds of this rule.
    """
    raw = inputs.raw
    too_small = is_too_small(
        batch=raw["batch"],
        elements=raw["batch"] * raw["channels_in"] * raw["height"] * raw["width"],
        kernel=(raw["kernel_height"], raw["kernel_width"]),
        stride=raw["stride"],
        dilation=raw["dilation"],
        groups=raw["groups"],
    )
    return np.asarray(too_small & (element_types(inputs) == _FLOAT32))


def _above(column: str, limit: float) -> tuple[tuple[str, ...], _Rule]:
    return (column,), lambda inputs: np.greater(inputs.raw[column], limit)


WITHOUT_ONEDNN = "without-onednn"
# The columns that each rule needs, and the rule.
_RULES: Mapping[str, tuple[tuple[str, ...], _Rule]] = {
    WITHOUT_ONEDNN: (_PATH_COLUMNS, _without_onednn),
    "blocked": _above("block", 0),
    "grouped": _above("groups", 1),
    "depthwise": _above("depthwise", 0),
    "pointwise": _above("pointwise", 0),
    "strided": _above("stride", 1),
    "channels-last": _above("channels_last", 0),
}
