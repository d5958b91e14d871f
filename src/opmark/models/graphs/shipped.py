"""Captured graphs that travel with OpMark, so that a machine without the runtimes has them too.

One gzip file per network, language and size. A graph is used where capturing would give the same one: the same
network, dimensions, threads, versions (major.minor) and code. Where a package for capturing is not installed,
nothing better can be had, and the network and its dimensions decide alone.
"""

import contextlib
import glob
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.errors import ContentError, UnavailableError
from opmark.core.files import write_bytes
from opmark.core.graph import Graph
from opmark.core.shipped import shipped_content
from opmark.models.graphs import encoding as store
from opmark.models.origin import Origin
from opmark.models.zoo import models


def graphs_folder() -> Path | None:
    """The folder of the graphs that came with this installation, or None."""
    try:
        return shipped_content().root / "bench" / "graphs"
    except UnavailableError:
        return None


def stored_graph(origin: Origin, folder: Path | None, *, any_version: bool = False) -> Graph | None:
    """The graph in `folder` that may stand for one captured here, or None.

    With `any_version`, one that other versions of the packages made will do too.
    """
    if folder is None:
        return None
    try:
        content = _read(graph_path(origin, folder))
        found = _origin(content)
        if any_version:
            found = replace(found, versions=origin.versions)
        if _comparable(found, origin) != _comparable(origin, origin):
            return None
        return store.decode(content, graph_path(origin, folder))
    except ContentError:  # not there, or damaged: captured instead
        return None


def sized_graphs(model: str, folder: Path | None) -> Iterator[Graph]:
    """Every graph of `model` in `folder`, in any language, batch and size; damaged ones are passed over."""
    if folder is None:
        return
    ends = re.compile(rf"{re.escape(model)}(-(batch|size)\d+)*\.json\.gz")
    for path in sorted(folder.glob(f"*/{glob.escape(model)}*.json.gz")):
        if ends.fullmatch(path.name):
            with contextlib.suppress(ContentError):
                yield store.decode(_read(path), path)


def is_stored(origin: Origin, folder: Path) -> bool:
    """Whether `folder` holds the graph of exactly this origin."""
    try:
        return _origin(_read(graph_path(origin, folder))) == origin
    except ContentError:
        return False


def save(graph: Graph, origin: Origin, folder: Path) -> Path:
    """Write `graph` into `folder`; the same graph gives the same bytes. Returns the file."""
    content = {**store.encode(graph), "origin": plain(origin)}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    path = graph_path(origin, folder)
    write_bytes(path, gzip.compress(text.encode(), compresslevel=9, mtime=0))
    return path


def graph_path(origin: Origin, folder: Path) -> Path:
    """Where `folder` has the graph: the model's name, and the dimensions where they are not its usual ones."""
    base = origin.model.partition("@")[0]
    family = models().get(base)
    usual = {} if family is None else {"batch": family.default_batch, "size": family.sizes[base]}
    unusual = [f"-{name}{size}" for name, size in origin.dimensions.items() if usual.get(name) != size]
    return folder / origin.language / f"{origin.model}{''.join(unusual)}.json.gz"


def _comparable(found: Origin, wanted: Origin) -> Origin:
    """`found` without what does not matter for its use as `wanted`."""
    versions = {name: ".".join(text.split(".")[:2]) for name, text in found.versions.items()}
    if not wanted.missing:
        return replace(found, versions=versions)
    # A file that is not the network of the zoo by that name still tells itself apart by its hash.
    return replace(found, versions={}, code="", threads=1)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
    except FileNotFoundError:
        raise ContentError("no such file", where=str(path)) from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ContentError("not a stored graph, or cut short", where=str(path)) from error
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    return content


def _origin(content: dict[str, Any]) -> Origin:
    try:
        return Origin(**content["origin"])
    except (KeyError, TypeError) as error:
        raise ContentError(f"a stored graph without its origin: {error}") from error
