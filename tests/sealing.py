"""Files edited by tests: journals whose lines get the checksum of their new content, and files without one."""

import json
import re
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


def unsealed(text: str) -> str:
    """The text of a JSON file without its checksum, as if somebody had written it."""
    return re.sub(r',\s*"checksum":\s*"[0-9a-f]{64}"', "", text)
