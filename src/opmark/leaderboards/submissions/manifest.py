"""What a submission's folder says about itself."""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.core.schema import load
from opmark.leaderboards.search.placer import PLACERS

SCHEMA = 1
MANIFEST = "submission.yaml"
PYTHON_FILE = "placer.py"
FILES_AT_MOST = 1000
SIZE_BYTES_AT_MOST = 16 * 2**20
_NAME = re.compile(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")
_LEFT_OUT = {"__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`submission.yaml`. Without a `command`, `placer.py` is run; a `deterministic` entry answers twice the same.

    `command` is run in the folder, once per problem: no shell, its first word a file of the folder or a program of
    the system. `tracks` are the folder names of the tracks it is made for; none means every one.
    """

    name: str
    title: str
    authors: tuple[str, ...]
    license: str
    description: str = ""
    paper: str = ""
    command: tuple[str, ...] = ()
    deterministic: bool = True
    tracks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A folder that holds a readable manifest."""

    folder: Path
    manifest: Manifest

    @property
    def python(self) -> bool:
        """Whether it is a `placer.py` that OpMark calls, rather than a command."""
        return not self.manifest.command


def load_submission(folder: Path) -> Submission:
    """The submission in `folder`. Raises `ContentError` naming the file and every wrong key, or what is missing."""
    found = Submission(folder=folder, manifest=load(folder / MANIFEST, Manifest, schema=SCHEMA))
    problems = [*_manifest_problems(found.manifest), *_folder_problems(found)]
    if problems:
        raise SubmissionError("; ".join(problems), where=str(folder))
    return found


def files(folder: Path) -> list[Path]:
    """What is handed in, relative to `folder` and sorted: hidden files and caches stay behind."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    kept = [path for path in found if not any(part.startswith(".") or part in _LEFT_OUT for part in path.parts)]
    return sorted(path for path in kept if not (folder / path).is_dir() or (folder / path).is_symlink())


def _manifest_problems(manifest: Manifest) -> Iterator[str]:
    if not _NAME.match(manifest.name):
        yield f"{MANIFEST}: name: {manifest.name!r} is not like my-name (lower-case letters, digits, hyphens)"
    elif manifest.name in PLACERS.names():
        yield f"{MANIFEST}: name: {manifest.name!r} is one of OpMark's own placers"
    for field in ("title", "license"):
        if not getattr(manifest, field).strip():
            yield f"{MANIFEST}: {field}: must not be empty"
    if not manifest.authors:
        yield f"{MANIFEST}: authors: name at least one"


def _folder_problems(submission: Submission) -> Iterator[str]:
    found = files(submission.folder)
    sizes = 0
    for path in found:
        status = (submission.folder / path).lstat()
        if not stat.S_ISREG(status.st_mode):
            yield f"{path}: only plain files can be handed in, no links"
        sizes += status.st_size
    if len(found) > FILES_AT_MOST:
        yield f"holds {len(found)} files, more than {FILES_AT_MOST}"
    if sizes > SIZE_BYTES_AT_MOST:
        yield f"holds {sizes >> 20} MiB, more than {SIZE_BYTES_AT_MOST >> 20}"
    if submission.python and Path(PYTHON_FILE) not in found:
        yield f"{MANIFEST}: command: missing, and there is no {PYTHON_FILE} either"
