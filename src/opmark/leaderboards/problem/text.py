"""A problem as a file that people can read and diff: a line per device, link, unit and tensor, defaults left out."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from opmark.core.canonical import plain
from opmark.core.cluster import Device, Link
from opmark.leaderboards.problem.problem import SCHEMA, Problem, Tensor, Unit
from opmark.leaderboards.problem.rules.arrivals import Arrivals

_ROWS = {"units": Unit, "tensors": Tensor, "devices": Device, "links": Link, "arrivals": Arrivals}


def problem_text(problem: Problem) -> str:
    """The JSON text of `problem`; loading it gives the same problem."""
    content = {"schema": SCHEMA, **plain(problem)}
    if not problem.arrivals:
        del content["arrivals"]
    return _block(content, 0) + "\n"


def _block(values: Mapping[str, Any], depth: int) -> str:
    pad = "  " * (depth + 1)
    lines = []
    for key, value in values.items():
        if key in _ROWS and value:
            rows = ",\n".join(f"{pad}  {_line(_told(row, _ROWS[key]))}" for row in value)
            text = f"[\n{rows}\n{pad}]"
        elif key == "cluster":
            text = _block(value, depth + 1)
        else:
            text = _line(value)
        lines.append(f"{pad}{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


def _told(row: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """A row without what its default says anyway."""
    usual: dict[str, Any] = {}
    for field in fields(kind):
        if field.default is not MISSING:
            usual[field.name] = plain(field.default)
        elif field.default_factory is not MISSING:
            usual[field.name] = plain(field.default_factory())
    return {key: value for key, value in row.items() if key not in usual or value != usual[key]}


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
