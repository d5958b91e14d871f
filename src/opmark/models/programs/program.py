"""The torch module of a saved program, built operator by operator."""

import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import ContentError
from opmark.core.units import format_bytes
from opmark.models.capture.quiet import quiet
from opmark.models.programs.archive import HINT, SavedProgram, read_program, scalar_type
from opmark.models.programs.builder import Builder
from opmark.models.programs.operators import UnknownOperatorError
from opmark.models.programs.sizes import input_shapes

if TYPE_CHECKING:
    import torch

_SCHEMA_MAJOR = 8
# Another schema, or a damaged file.
_UNREADABLE = (
    RuntimeError, ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, EOFError, OverflowError,
    AssertionError, MemoryError, SyntaxError, NotImplementedError, StopIteration, zipfile.BadZipFile,
)  # fmt: skip


def program_of(
    path: Path, dimensions: Mapping[str, int] | None = None
) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    """The program in `path` as a module, and inputs of the shapes it was exported with.

    `dimensions` gives the sizes that it leaves open. No code of the file runs: see `programs.archive` and
    `programs.operators`. Raises `ContentError` where the file is no program, needs a pickle, calls what is no operator
    or leaves a size open, `UsageError` for a dimension that is not open.
    """
    if not path.is_file():
        raise ContentError("no such file", where=str(path))
    try:
        with quiet():
            saved = read_program(path)
            if saved.content["schema_version"]["major"] != _SCHEMA_MAJOR:
                raise ValueError("another schema")
            graph = saved.content["graph_module"]
            names, inputs = _inputs(graph, saved, dimensions or {})
            return Builder(saved).module(graph, names), inputs
    except UnknownOperatorError as error:
        raise ContentError(
            f"calls {str(error)[:80]!r}, which is no operator that can be loaded safely",
            where=str(path),
            hint="export the module without control flow, custom operators and autocast",
        ) from error
    except _UNREADABLE as error:
        raise ContentError(
            "not a program saved by torch.export, or one from another version of torch", where=str(path), hint=HINT
        ) from error


def _inputs(
    graph: Mapping[str, Any], saved: SavedProgram, dimensions: Mapping[str, int]
) -> "tuple[list[str], tuple[torch.Tensor, ...]]":
    """The names of the inputs, and a tensor for each."""
    import torch

    specs = [spec["user_input"]["arg"] for spec in graph["signature"]["input_specs"] if "user_input" in spec]
    names: list[str] = []
    for spec in specs:
        kind, value = next(iter(spec.items()))
        if kind != "as_tensor":
            name = value.get("as_name") or value.get("name") if isinstance(value, Mapping) else value
            raise ContentError(f"its input {name!r} is not a tensor", where=str(saved.path))
        names.append(value["name"])
    metas = [graph["graph"]["tensor_values"][name] for name in names]
    ranges = saved.content.get("range_constraints", {})
    shapes = input_shapes(
        [(name, meta["sizes"]) for name, meta in zip(names, metas, strict=True)], ranges, dimensions, saved.path
    )
    dtypes = [scalar_type(meta["dtype"]) for meta in metas]
    size_bytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, dtypes, strict=True))
    if size_bytes > _memory_bytes() // 2:
        raise ContentError(
            f"its inputs take {format_bytes(size_bytes)}, more than half of this machine's memory",
            where=str(saved.path),
            hint="export it for smaller inputs",
        )
    return names, _tensors(shapes, dtypes, torch)


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _tensors(
    shapes: Sequence[tuple[int, ...]], dtypes: "Sequence[torch.dtype]", torch: Any
) -> "tuple[torch.Tensor, ...]":
    return tuple(
        torch.randn(shape, dtype=dtype) if dtype.is_floating_point else torch.zeros(shape, dtype=dtype)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    )
