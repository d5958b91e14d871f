"""How predictions and kernels are written for people."""

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opmark.core.units import format_ns

if TYPE_CHECKING:
    from opmark.predictors.model.network import NetworkPrediction

_STEPS = frozenset({"stride", "dilation", "groups"})
_LONGEST_NOTE = 100
_SIZES = frozenset({"shape", "shapes", "kernel", "size", "output", "batch_a", "batch_b"})


def total_text(model: str, target: str, found: "NetworkPrediction") -> str:
    """What is predicted of a whole network, with its interval."""
    return (
        f"{model} on {target}: {format_ns(found.total_ns)} "
        f"({format_ns(found.low_ns)} to {format_ns(found.high_ns)} with {found.coverage:.0%} confidence)"
    )


def note_text(note: str) -> str:
    """A note that may name dozens of networks, on one line; `--json` and `predictors show` have all of it."""
    names = note.split(", ")
    for kept in range(len(names), 1, -1):
        text = ", ".join(names[:kept]) + (f" and {len(names) - kept} more" if kept < len(names) else "")
        if len(text) <= _LONGEST_NOTE:
            return text
    return textwrap.shorten(note, width=_LONGEST_NOTE, placeholder=" …")


def parameters_text(params: Mapping[str, Any]) -> str:
    """The parameters that change something, on one line: `shape=1×128×768 axis=2`; no zero, no stride of one."""
    shown = ((name, value) for name, value in params.items() if not _is_neutral(name, value))
    return " ".join(f"{name}={_value_text(value, '×' if name in _SIZES else ',')}" for name, value in shown)


def _is_neutral(name: str, value: Any) -> bool:
    neutral = 1 if name in _STEPS else 0
    if isinstance(value, tuple):
        return name not in _SIZES and all(item == neutral for item in value)
    return value in (None, "", False, neutral)


def _value_text(value: Any, between: str) -> str:
    if isinstance(value, tuple) and any(isinstance(item, tuple) for item in value):
        return ",".join(_value_text(item, between) or "scalar" for item in value)
    if isinstance(value, tuple):
        return between.join(_value_text(item, between) for item in value)
    return "yes" if value is True else str(value)
