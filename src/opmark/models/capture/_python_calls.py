"""Counts the Python functions that one forward pass of a module enters: the interpreter's share of eager torch."""

# ruff: noqa: TID253 (this module is imported only when something is traced)

import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

_TORCH = Path(torch.__file__).parent
# What fake tensors run in Python and real ones do not.
_FAKING = (
    *(str(_TORCH / name) for name in ("_decomp", "_dynamo", "_higher_order_ops", "_library", "_prims", "_refs", "fx")),
    *(str(_TORCH / name) for name in ("_compile.py", "_guards.py", "_meta_registrations.py", "_ops.py", "_subclasses")),
    *(str(_TORCH / "utils" / name) for name in ("_python_dispatch.py", "_pytree.py", "_stats.py", "weak.py")),
    weakref.__file__,
)


def python_calls(module: torch.nn.Module, inputs: Sequence[torch.Tensor], fake: FakeTensorMode) -> int:
    """The Python functions that `module` enters for `inputs`, those of modules and of torch alike.

    The pass runs on the tensors of `fake`, without computing anything. The module must have run before, because a
    first pass enters functions that later ones do not.
    """
    counter = _Counter()
    before = sys.getprofile()
    with fake:
        sys.setprofile(counter)
        try:
            module(*inputs)
        finally:
            sys.setprofile(before)
    return counter.entered


class _Counter:
    """A profile function that counts calls outside of `_FAKING`, and none that are made from there."""

    def __init__(self) -> None:
        self.entered = 0
        self._faking: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, _value: Any) -> None:
        if event == "call" and self._faking is None:
            if frame.f_code.co_filename.startswith(_FAKING):
                self._faking = frame
            else:
                self.entered += 1
        elif event == "return" and frame is self._faking:
            self._faking = None
