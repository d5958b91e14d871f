"""Programs saved by `torch.export.save`, as `.pt2` files."""

import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.models.capture.quiet import quiet

if TYPE_CHECKING:
    import torch

# The loader's exceptions for other files: from the archive, the pickle and the schema.
_UNREADABLE = (
    RuntimeError, ValueError, KeyError, OSError, AssertionError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError,
)  # fmt: skip


def program_of(path: Path) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    """The program as a module, and inputs of the shapes it was exported with.

    Raises `ContentError` where the file is not one, or where a shape in it is still open.
    """
    program = _load(path)
    inputs = _inputs(program, path)
    module: torch.nn.Module = program.module(check_guards=False)
    return module, inputs


def _load(path: Path) -> Any:
    import torch

    if not path.is_file():
        raise ContentError("no such file", where=str(path))
    try:
        with quiet():
            return torch.export.load(path)
    except _UNREADABLE as error:
        raise ContentError(
            "not a program saved by torch.export, or one from another version of torch",
            where=str(path),
            hint="save it again with torch.export.save(torch.export.export(module, inputs), path)",
        ) from error


def _inputs(program: Any, path: Path) -> "tuple[torch.Tensor, ...]":
    import torch

    inputs = []
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs:
            value = node.meta["val"]
            if not isinstance(value, torch.Tensor):
                raise ContentError(f"its input {node.name!r} is not a tensor", where=str(path))
            if not all(isinstance(size, int) for size in value.shape):
                raise ContentError(
                    f"its input {node.name!r} has the open shape {tuple(map(str, value.shape))}",
                    where=str(path),
                    hint="export it without dynamic_shapes",
                )
            whole = not value.is_floating_point()
            shape = tuple(value.shape)
            inputs.append(torch.zeros(shape, dtype=value.dtype) if whole else torch.randn(shape, dtype=value.dtype))
    return tuple(inputs)
