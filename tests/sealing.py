"""Journals edited by tests: every line gets the checksum that fits its new content."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def sealed(content: dict[str, Any]) -> str:
    """A line of a journal with `content`, whatever checksum it had."""
    text = json.dumps({key: value for key, value in content.items() if key != "crc"}, separators=(",", ":"))[:-1]
    return f'{text},"crc":"{zlib.crc32(text.encode()):08x}"}}\n'


def edit_journal(path: Path, change: Callable[[str], str]) -> None:
    """Change the text of every line of the journal at `path`."""
    path.write_text("".join(sealed(json.loads(change(line))) for line in path.read_text().splitlines()))
