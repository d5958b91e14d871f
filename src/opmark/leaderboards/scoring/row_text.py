"""JSON with a line per row: what is short stays on one line, so that files with thousands of rows stay small."""

import json
from typing import Any

from opmark.core.canonical import plain

WIDTH = 400


def row_text(value: Any) -> str:
    """`value` (dataclasses allowed) as JSON text in the order of its keys; nothing longer than `WIDTH` is one line."""
    return _text(plain(value), "") + "\n"


def _text(value: Any, pad: str) -> str:
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(line) <= WIDTH or not isinstance(value, (dict, list)) or not _has_rows(value):
        return line
    deeper = pad + " "
    if isinstance(value, dict):
        rows = [f"{deeper}{json.dumps(key, ensure_ascii=False)}: {_text(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    return "[\n" + ",\n".join(deeper + _text(item, deeper) for item in value) + f"\n{pad}]"


def _has_rows(value: Any) -> bool:
    """Whether anything inside has parts of its own: a long list of numbers is still one row."""
    return any(isinstance(item, (dict, list)) for item in (value.values() if isinstance(value, dict) else value))
