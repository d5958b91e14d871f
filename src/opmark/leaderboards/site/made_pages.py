"""Pages that need not be made again: each file ends with hashes of what it was made from and of its text."""

import hashlib
from functools import cache
from pathlib import Path

import opmark
from opmark.core.canonical import content_id
from opmark.leaderboards.site.page import Document

# The code that a page follows from.
_FOLDERS = ("pages", "leaderboards/site")
_FILES = ("core/units.py", "core/plain_text.py", "leaderboards/problem/rules/objective.py")
_CODE = frozenset({".py", ".jinja", ".css", ".js"})
_WORDS = b"made from "


def finished(document: Document, source: str) -> bytes:
    """The bytes of a document's file: its text, and a last line about its origin."""
    text = document.make()
    if not text.endswith("\n"):
        text += "\n"
    content = text.encode()
    return content + _mark(document, source, content)


def is_current(path: Path, document: Document, source: str) -> bool:
    """True if the file at `path` was made from `source` and nobody has changed it since."""
    if not path.is_file():
        return False
    content, _, line = path.read_bytes().rstrip(b"\n").rpartition(b"\n")
    return _WORDS in line and line + b"\n" == _mark(document, source, content + b"\n")


def source_of(document: Document) -> str:
    """A hash of everything that a document follows from, the code included."""
    return content_id(repr((_code(), document.path, document.source)))


def _mark(document: Document, source: str, content: bytes) -> bytes:
    begin, end = (b"<!--", b"-->") if document.path.endswith(".html") else (b"/*", b"*/")
    words = _WORDS + f"{source}, text {hashlib.sha256(content).hexdigest()[:16]}".encode()
    return begin + b" " + words + b" " + end + b"\n"


@cache
def _code() -> str:
    root = Path(opmark.__file__).parent
    paths = [path for folder in _FOLDERS for path in (root / folder).rglob("*") if path.suffix in _CODE]
    found = hashlib.sha256()
    for path in sorted([*paths, *(root / name for name in _FILES)]):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
