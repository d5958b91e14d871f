"""The manifest of a submission (`submission.yaml`), and the checks of its folder."""

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import SubmissionError
from opmark.core.schema import load
from opmark.core.slug import Slug
from opmark.leaderboards.search.placer import PLACERS

SCHEMA = 1
MANIFEST = "submission.yaml"
PYTHON_FILE = "placer.py"
FILES_AT_MOST = 1000
SIZE_BYTES_AT_MOST = 16 * 2**20
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LEFT_OUT = {"__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionManifest:
    """The content of `submission.yaml`. Without a `command`, OpMark calls `placer.py`.

    `command` runs in the folder, once per problem and without a shell; its first word is a file of the folder or a
    program of the system. A `deterministic` entry gives the same answer twice. `tracks` are the folder names of the
    tracks that it is made for; none means all.
    """

    name: Slug
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
    """A folder with a valid manifest."""

    folder: Path
    manifest: SubmissionManifest

    @property
    def python(self) -> bool:
        """True where OpMark calls a `placer.py`, false where it runs a command."""
        return not self.manifest.command


def load_submission(folder: Path) -> Submission:
    """Load the submission in `folder`. Raises `ContentError` naming every wrong or missing key and file."""
    found = Submission(folder=folder, manifest=load(folder / MANIFEST, SubmissionManifest, schema=SCHEMA))
    problems = [*_manifest_problems(found.manifest), *_folder_problems(found)]
    if problems:
        raise SubmissionError("; ".join(problems), where=str(folder))
    return found


def files(folder: Path) -> list[Path]:
    """The submitted files, relative to `folder` and sorted, without hidden files and caches."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    kept = [path for path in found if not any(part.startswith(".") or part in _LEFT_OUT for part in path.parts)]
    return sorted(path for path in kept if not (folder / path).is_dir() or (folder / path).is_symlink())


def _manifest_problems(manifest: SubmissionManifest) -> Iterator[str]:
    if not _NAME.fullmatch(manifest.name):
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
            yield f"{path}: only plain files can be submitted, no links"
        sizes += status.st_size
    if len(found) > FILES_AT_MOST:
        yield f"holds {len(found)} files, more than {FILES_AT_MOST}"
    if sizes > SIZE_BYTES_AT_MOST:
        yield f"holds {sizes >> 20} MiB, more than {SIZE_BYTES_AT_MOST >> 20}"
    if submission.python and Path(PYTHON_FILE) not in found:
        yield f"{MANIFEST}: command: missing, and there is no {PYTHON_FILE} either"
