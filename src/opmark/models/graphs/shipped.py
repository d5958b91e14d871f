"""Captured graphs shipped with OpMark, for machines without the runtimes.

One gzip file per network, language and size; graphs of ONNX Runtime with blocks of channels that a narrower
processor makes have a folder of their own. A graph is used where capturing would give the same one: the same network,
dimensions, threads, blocks, versions (major.minor) and code. Where a package for capturing is not installed, the
network, its dimensions and its blocks alone must match.
"""

import contextlib
import glob
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, UnavailableError
from opmark.core.files import write_sealed
from opmark.core.kernels.graph import Graph
from opmark.core.reading import read_json
from opmark.core.schema import convert
from opmark.core.shipped import shipped_content
from opmark.models.graphs import encoding
from opmark.models.origin import GraphOrigin
from opmark.models.zoo import models

# Graphs with blocks of this width, or without blocks, lie in the language's own folder.
USUAL_WIDTH = 16


def graphs_folder() -> Path | None:
    """The folder of the graphs that came with this installation, or None."""
    try:
        return shipped_content().root / "bench" / "graphs"
    except UnavailableError:
        return None


def stored_graph(origin: GraphOrigin, folder: Path | None, *, any_version: bool = False) -> Graph | None:
    """The graph in `folder` that equals one captured here, or None.

    With `any_version`, graphs captured by other versions of the packages are accepted too.
    """
    for path, content in _fitting(origin, folder, any_version=any_version):
        with contextlib.suppress(ContentError):  # damaged: captured instead
            return encoding.decode(content, path)
    return None


def needs_no_capture(origin: GraphOrigin, folder: Path | None) -> bool:
    """True if `folder` holds a file for the graph that `stored_graph` gives; its nodes are not read."""
    return next(_fitting(origin, folder), None) is not None


def other_versions(origin: GraphOrigin, folder: Path) -> str:
    """The packages that captured the graph in `folder`, where this machine has others: `onnxruntime 1.31.1`.

    Packages that are not installed here do not count; without such a graph the text is empty.
    """
    fitting = next(_fitting(origin, folder, any_version=True), None)
    made = {} if fitting is None else _origin(fitting[1], fitting[0]).versions
    return " and ".join(
        f"{name} {version}"
        for name, version in made.items()
        if origin.versions.get(name) and _release(version) != _release(origin.versions[name])
    )


def sized_graphs(model: str, folder: Path | None) -> Iterator[Graph]:
    """Every graph of `model` in `folder`, in any language, batch and size; damaged ones are skipped."""
    if folder is None:
        return
    ends = re.compile(rf"{re.escape(model)}(-(batch|size)\d+)*\.json\.gz")
    for path in sorted(folder.glob(f"*/{glob.escape(model)}*.json.gz")):
        if ends.fullmatch(path.name):
            with contextlib.suppress(ContentError):
                yield encoding.decode(_read(path), path)


def is_stored(origin: GraphOrigin, folder: Path) -> bool:
    """True if `folder` holds the graph of exactly this origin."""
    for path in _candidates(origin, folder):
        with contextlib.suppress(ContentError):
            if _with_width(_origin(_read(path), path), origin) == origin:
                return True
    return False


def save(graph: Graph, origin: GraphOrigin, folder: Path) -> Path:
    """Write `graph` into `folder`; the same graph gives the same bytes. Returns the file."""
    if not any(node.kernel.params.get("block") for node in graph.nodes):
        origin = replace(origin, block_width=0)
    content = {**encoding.encode(graph), "origin": plain(origin)}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    path = graph_path(origin, folder)
    write_sealed(path, text)
    return path


def graph_path(origin: GraphOrigin, folder: Path) -> Path:
    """The path of a graph in `folder`: the model's name, then the dimensions that are not the usual ones."""
    base = origin.model.partition("@")[0]
    family = models().get(base)
    usual = {} if family is None else {"batch": family.default_batch, "size": family.sizes[base]}
    unusual = [f"-{name}{size}" for name, size in origin.dimensions.items() if usual.get(name) != size]
    width = f"-{origin.block_width}" if origin.block_width not in (0, USUAL_WIDTH) else ""
    return folder / f"{origin.language}{width}" / f"{origin.model}{''.join(unusual)}.json.gz"


def _candidates(origin: GraphOrigin, folder: Path) -> tuple[Path, ...]:
    """Where the graph of `origin` may lie: among those of its blocks, or among those without blocks."""
    own, without = (graph_path(one, folder) for one in (origin, replace(origin, block_width=0)))
    return (own,) if own == without else (own, without)


def _fitting(
    origin: GraphOrigin, folder: Path | None, *, any_version: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files in `folder`, with their contents, that hold the graph of `origin`; missing and damaged ones do not."""
    for path in () if folder is None else _candidates(origin, folder):
        with contextlib.suppress(ContentError):
            content = _read(path)
            if _fits(content, path, origin, any_version=any_version):
                yield path, content


def _fits(content: dict[str, Any], path: Path, wanted: GraphOrigin, *, any_version: bool) -> bool:
    """True if the graph in the file `content` at `path` is the one that a capture of `wanted` gives."""
    found = _origin(content, path)
    if any_version:
        found = replace(found, versions=wanted.versions)
    return _comparable(found, wanted) == _comparable(wanted, wanted)


def _comparable(found: GraphOrigin, wanted: GraphOrigin) -> GraphOrigin:
    """`found` without the fields that need not match `wanted`."""
    versions = {name: _release(text) for name, text in found.versions.items()}
    found = _with_width(found, wanted)
    if not wanted.missing:
        return replace(found, versions=versions)
    # A file that shares a zoo network's name still differs by its hash.
    return replace(found, versions={}, code="", threads=1)


def _with_width(found: GraphOrigin, wanted: GraphOrigin) -> GraphOrigin:
    """`found` with the blocks that are `wanted`, if it has none itself."""
    return found if found.block_width else replace(found, block_width=wanted.block_width)


def _release(version: str) -> str:
    """The part of a version that may change what is captured: its first two numbers."""
    return ".".join(version.split(".")[:2])


def _read(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    return content


def _origin(content: dict[str, Any], path: Path) -> GraphOrigin:
    return convert(content.get("origin"), GraphOrigin, where=f"{path}: origin")
