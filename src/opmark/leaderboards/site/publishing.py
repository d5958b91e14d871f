"""Write the site of a workspace, unless it stands already: nothing that it follows from has changed, and no page.

This module is light, so that a site that stands is known without loading the simulator.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import opmark
from opmark.core.canonical import content_id
from opmark.core.errors import OpMarkError
from opmark.core.files import sha256, write_json
from opmark.core.reading import read_json
from opmark.core.workspace import Workspace

_CODE = frozenset({".py", ".jinja", ".css", ".js"})
# Problems, answers, standings, runs and executed placements; not the archives of submissions, which no page shows.
_CONTENT = (".json", ".json.gz", ".yaml")
_MANIFESTS, _CARDS = "*/*/*/manifest.json", "*/*/README.md"


def publish_tracks(
    leaderboards: Path, folder: Path, progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None
) -> tuple[Path, ...]:
    """Write the site of every track with stored solutions; returns its files, `index.html` first.

    `progress` hears the name of a track or of a step, and how much of it is done. Raises `NothingSelectedError` where
    no track has any solution.
    """
    workspace = Workspace(leaderboards.parent)
    record = workspace.cache / "site" / f"written-{content_id(str(folder.absolute()))}.json"
    source = content_of(leaderboards)
    standing = _standing(record, folder, source)
    if standing:
        return standing
    from opmark.leaderboards.site.exhibition import publish_boards

    files = publish_boards(leaderboards, folder, progress)
    checksums = {path.relative_to(folder).as_posix(): sha256(path) for path in files}
    write_json(record, {"schema": 1, "source": source, "files": checksums})
    return files


def content_of(leaderboards: Path) -> str:
    """A hash of all files of a workspace, the one with `leaderboards`, that its site follows from, and of our code."""
    workspace = Workspace(leaderboards.parent)
    code = Path(opmark.__file__).parent
    found = hashlib.sha256()
    for root, paths in (
        (code, _files(code, tuple(_CODE))),
        (leaderboards, _files(leaderboards, _CONTENT)),
        (workspace.root, workspace.predictors.glob(_MANIFESTS)),
        (workspace.root, workspace.datasets.glob(_CARDS)),
    ):
        for path in sorted(paths):
            found.update(f"{path.relative_to(root).as_posix()}\0{sha256(path)}\0".encode())
    return found.hexdigest()


def _files(folder: Path, endings: Sequence[str]) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.name.endswith(tuple(endings)) and path.is_file())


def _standing(record: Path, folder: Path, source: str) -> tuple[Path, ...]:
    """The files of the site in `folder` if it was made from `source` and stands unchanged; none otherwise."""
    if not record.is_file():
        return ()
    try:
        known = read_json(record)
        if known["source"] != source:
            return ()
        files = {folder / name: checksum for name, checksum in known["files"].items()}
        same = all(path.is_file() and sha256(path) == checksum for path, checksum in files.items())
    except (OpMarkError, OSError, LookupError, TypeError, AttributeError):  # a damaged record
        return ()
    return tuple(files) if same else ()
