"""Modules of compiled functions, imported at their first use.

Importing one compiles it where nobody has done so yet. While tests are collected, every process would do that at once.
"""

from importlib import import_module
from typing import Any


class CompiledModule:
    """Stands for the module called `name`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for some, `_mock_name` too, on everything that a module holds
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
