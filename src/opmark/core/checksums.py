"""The checksum at the end of a JSON file that OpMark wrote, and the list of files that were read without one.

It is the last key of the file and covers every other byte, so that any change shows. Files that people write need none.
"""

import hashlib
import re
from pathlib import Path

KEY = "checksum"
HINT = 'copy or make the file again; if you edited it yourself, remove its last key, "checksum"'
_ENTRY = re.compile(rb',\s*"checksum":\s*"([0-9a-f]{64})"(\s*\}\s*)$')
_END = re.compile(r"(?P<indent>\n?)\}\n?$")
# No entry and its end are longer.
_ENTRY_BYTES = 200
_without: dict[Path, None] = {}


def with_checksum(text: str) -> str:
    """`text`, a JSON object, with its checksum as the last key."""
    end = _END.search(text)
    if end is None:
        raise ValueError("not a JSON object")
    head, tail = text[: end.start()], text[end.start() :]
    digest = hashlib.sha256(head.encode())
    digest.update(tail.encode())
    separator = ',\n  "checksum": ' if end["indent"] else ',"checksum":'
    return f'{head}{separator}"{digest.hexdigest()}"{tail}'


def checksum_fits(content: bytes) -> bool | None:
    """True if the checksum of a file fits the rest of it, False if not, None if it has none."""
    parts = _parts(content)
    if parts is None:
        return None
    head, checksum, tail = parts
    digest = hashlib.sha256(head)
    digest.update(tail)
    return digest.hexdigest() == checksum


def sealed_parts(content: bytes) -> tuple[memoryview, bytes] | None:
    """The JSON text before and behind the checksum of a file that fits it; None for any other file."""
    parts = _parts(content) if checksum_fits(content) else None
    return (parts[0], parts[2]) if parts else None


def _parts(content: bytes) -> tuple[memoryview, str, bytes] | None:
    """The text before the checksum's entry, the checksum, and the text behind it; None where there is no entry."""
    start = max(0, len(content) - _ENTRY_BYTES)
    found = _ENTRY.search(content[start:])
    return (memoryview(content)[: start + found.start()], found[1].decode(), found[2]) if found else None


def without_checksum(path: Path) -> None:
    """Note that `path` was read although damage to it could not be seen."""
    _without[path] = None


def files_without() -> tuple[Path, ...]:
    """The files that were noted since the list was emptied."""
    return tuple(_without)


def forget_files() -> None:
    """Empty the list: a command begins."""
    _without.clear()
