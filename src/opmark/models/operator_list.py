"""Lets onnxscript remember its list of operators, for every export of a process after the first.

It stands apart from the export, whose code is a part of the identity of every captured graph.
"""

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any


@cache
def list_operators_once() -> None:
    """Let onnxscript remember its operators. It reads the source of all of them for each export, in a second.

    The list is the same each time. The names are internal ones of torch: another version that lacks them is as slow as
    before.
    """
    with suppress(ImportError, AttributeError):
        listed: Any = import_module("torch.onnx._internal.exporter._registration").onnxscript_apis
        listed.get_torchlib_ops = cache(listed.get_torchlib_ops)
