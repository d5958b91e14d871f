"""The files beside an ONNX file that hold its weights: none outside the model's folder is opened.

The format allows a path relative to the ONNX file; a path that leaves the folder would let a downloaded model name any
file of this machine.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from opmark.core.errors import ContentError
from opmark.core.reading import LARGE_BYTES, read_bytes

if TYPE_CHECKING:
    import onnx

_KEY = "location"
_HINT = "put the external-data file beside the ONNX file, and save the model with its name alone"


def check_weight_files(path: Path) -> None:
    """Raise `ContentError` where a tensor of the ONNX file `path` lies outside the file's folder.

    What is no ONNX file passes; the reader that comes next refuses it. Links inside the folder are the owner's choice.
    """
    content = read_bytes(path, at_most=2 * LARGE_BYTES)
    if _KEY.encode() not in content:
        return
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return
    for tensor in _tensors(model.graph):
        for item in tensor.external_data:
            if item.key == _KEY and not is_inside(item.value, path.parent):
                raise ContentError(
                    f"the weights of {tensor.name!r} are in {item.value[:200]!r}, outside the model's folder",
                    where=str(path),
                    hint=_HINT,
                )


def is_inside(location: str | bytes, folder: Path) -> bool:
    """True where `location`, relative to `folder` or absolute, names a file in `folder` or below it.

    Protobuf gives a text that is no UTF-8 as bytes; such a name is not followed.
    """
    if isinstance(location, bytes) or not location or "\0" in location or "\\" in location:
        return False
    home = os.path.normpath(Path.cwd() / folder)
    named = os.path.normpath(Path(home) / location)
    return named != home and os.path.commonpath([home, named]) == home


def _tensors(graph: "onnx.GraphProto") -> Iterator["onnx.TensorProto"]:
    """Every tensor of a graph: weights, and constants of nodes and of their subgraphs."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)
