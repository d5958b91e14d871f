"""Which predictors a wheel holds: the newest of every target, and those that the devices of leaderboards name.

Older versions stay in the repository. A wheel with all of them would be several times as large.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CONTENT = "opmark/content"
_MANIFEST = "manifest.json"
_NAMED = re.compile(r"^bundle: *([\w./-]+) *$", flags=re.MULTILINE)


class PredictorsHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the shipped predictors to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name every file and its place in the wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        build_data["force_include"] |= {str(root / name): f"{_CONTENT}/{name}" for name in shipped(root)}


def shipped(root: Path) -> list[str]:
    """The files of `predictors/` that a wheel holds, relative to the repository."""
    folder = root / "predictors"
    bundles = {path.parent for path in folder.glob(f"*/*/*/{_MANIFEST}")}
    newest: dict[tuple[str, str], Path] = {}
    for bundle in sorted(bundles, key=lambda path: _version(path.parent.name)):
        newest[bundle.parent.parent.name, bundle.name] = bundle
    kept = set(newest.values()) | {folder / name for name in _named_bundles(root)}
    return sorted(
        path.relative_to(root).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(parent in bundles - kept for parent in path.parents)
    )


def _named_bundles(root: Path) -> Iterator[str]:
    for path in (root / "leaderboards" / "devices").glob("*.yaml"):
        yield from _NAMED.findall(path.read_text(encoding="utf-8"))


def _version(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)))
