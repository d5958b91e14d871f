"""Reading an ONNX file: checks before a runtime sees it, and values for its open dimensions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError, UsageError
from opmark.core.reading import read_bytes

if TYPE_CHECKING:
    import onnx

# Protobuf allows no more; larger models keep their weights in other files.
_AT_MOST_BYTES = 2**31
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
# No axis of a tensor that fits a machine is longer.
SIZE_AT_MOST = 2**40


@dataclass(frozen=True, kw_only=True)
class OnnxFile:
    """A checked file. `model` holds no external weights; `overrides` are named dimensions for the runtime to set.

    Where `changed`, `model` differs from the file, and a runtime must be given `model` itself.
    """

    path: Path
    model: "onnx.ModelProto"
    overrides: Mapping[str, int] = field(default_factory=dict)
    changed: bool = False


def read(path: Path, dimensions: Mapping[str, int]) -> OnnxFile:
    """The checked content of `path` with `dimensions` (by name, or `input.axis` for an unnamed one) given.

    Raises `ContentError` for what is not an ONNX file, lacks its weights, branches at run time, has a cycle or an
    open dimension; `UsageError` for a dimension that is not there or not positive.
    """
    model = _parsed(path)
    _check_external(model, path)
    _check_flow(model, path)
    _check_acyclic(model, path)
    return _with_dimensions(model, path, dimensions)


def constant_names(graph: "onnx.GraphProto") -> set[str]:
    """The names of the tensors stored in the file."""
    return {item.name for item in graph.initializer} | {item.values.name for item in graph.sparse_initializer}


def _parsed(path: Path) -> "onnx.ModelProto":
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    where = str(path)
    content = read_bytes(path, at_most=_AT_MOST_BYTES)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise ContentError("not an ONNX file, or cut short", where=where) from None
    # Almost any bytes parse as a message without known fields.
    if not model.HasField("graph") or not model.opset_import:
        raise ContentError("not an ONNX file", where=where)
    if not model.graph.node or not model.graph.output:
        raise ContentError("the ONNX file holds an empty graph", where=where)
    return model


def _check_external(model: "onnx.ModelProto", path: Path) -> None:
    for tensor in model.graph.initializer:
        entries = {item.key: item.value for item in tensor.external_data}
        if "location" not in entries:
            continue
        file = path.parent / entries["location"]
        if not file.is_file():
            raise ContentError(
                f"the weights of {tensor.name!r} are in {entries['location']!r}, which is missing",
                where=str(path),
                hint="put the external-data file beside the ONNX file",
            )
        end = sum(_external_bytes(tensor.name, key, entries, path) for key in ("offset", "length"))
        if file.stat().st_size < end:
            raise ContentError(
                f"{entries['location']!r} ends before the weights of {tensor.name!r} do", where=str(path)
            )


def _external_bytes(tensor: str, key: str, entries: Mapping[str, str], path: Path) -> int:
    text = entries.get(key, "0")
    if not _WHOLE.fullmatch(text):
        raise ContentError(
            f"the {key} of the weights of {tensor!r} is {text[:40]!r}, not a number of bytes", where=str(path)
        )
    return int(text)


def _check_flow(model: "onnx.ModelProto", path: Path) -> None:
    for node in model.graph.node:
        if any(item.HasField("g") or item.graphs for item in node.attribute):
            raise ContentError(
                f"{node.op_type} {node.name!r} decides at run time what runs, so there is no one graph of kernels",
                where=str(path),
                hint="export the model without control flow",
            )


def _check_acyclic(model: "onnx.ModelProto", path: Path) -> None:
    nodes = list(model.graph.node)
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    sources = ({makers[name] for name in node.input if name in makers} for node in nodes)
    try:
        TopologicalSorter(dict(enumerate(sources))).prepare()
    except CycleError as error:
        stuck = nodes[min(error.args[1])]
        raise ContentError(
            f"the graph has a cycle through {stuck.name or stuck.output[0]!r}", where=str(path)
        ) from error


def _with_dimensions(model: "onnx.ModelProto", path: Path, dimensions: Mapping[str, int]) -> OnnxFile:
    for name, size in dimensions.items():
        if not 1 <= size <= SIZE_AT_MOST:
            raise UsageError(
                f"dimension {name!r} cannot be {size}", hint=f"give a whole number from 1 to {SIZE_AT_MOST:,}"
            )
    named: set[str] = set()
    known: set[str] = set()
    missing: list[tuple[str, int, str]] = []
    changed = False
    for input_name, axis, dimension in _open_dimensions(model):
        key = dimension.dim_param or f"{input_name}.{axis}"
        known.add(key)
        if key not in dimensions:
            missing.append((input_name, axis, key))
        elif dimension.dim_param:
            named.add(key)
        else:
            dimension.dim_value = dimensions[key]
            changed = True
    unknown = sorted(set(dimensions) - known)
    if unknown:
        raise UsageError(
            f"{path.name} has no open dimension {unknown[0]!r}",
            hint=f"its open dimensions: {', '.join(sorted(known)) or 'none'}",
        )
    if missing:
        input_name, axis, key = missing[0]
        keys = list(dict.fromkeys(item[2] for item in missing))
        raise ContentError(
            f"input {input_name!r} leaves dimension {axis} ({key!r}) open",
            where=str(path),
            hint=f"give {'them' if len(keys) > 1 else 'it'}: "
            + " ".join(f"--dimension {name}={1 if 'batch' in name else 128}" for name in keys),
        )
    return OnnxFile(path=path, model=model, overrides={name: dimensions[name] for name in named}, changed=changed)


def _open_dimensions(model: "onnx.ModelProto") -> Iterator[tuple[str, int, "onnx.TensorShapeProto.Dimension"]]:
    constants = constant_names(model.graph)
    for item in model.graph.input:
        if item.name in constants:
            continue
        for axis, dimension in enumerate(item.type.tensor_type.shape.dim):
            if dimension.dim_value < 1:
                yield item.name, axis, dimension
