"""Problem files: read, checked, and written with a line per device, link, unit and tensor, defaults left out."""

import gc
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from opmark.core.canonical import plain
from opmark.core.files import write_sealed
from opmark.core.hardware.cluster import Device, Link
from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import load
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.columns.large_file import load_by_columns, no_collection
from opmark.leaderboards.problem.fields import Arrivals, Tensor, Unit
from opmark.leaderboards.problem.problem import Problem

SCHEMA = 1
# Objects of problems with more units are kept out of all later collections, each of which would take seconds.
_FROZEN_FROM = 100_000
_ROWS = {"units": Unit, "tensors": Tensor, "devices": Device, "links": Link, "arrivals": Arrivals}


def load_problem(path: Path) -> Problem:
    """The checked problem in `path`. Raises `ContentError` naming the file and every wrong key."""
    with no_collection():
        read = load_by_columns(path, schema=SCHEMA)
        if read is None:
            read = load(path, Problem, schema=SCHEMA, sealed=True, at_most=LARGE_BYTES)
        problem = checked(read, str(path))
        if len(problem.unit_names) > _FROZEN_FROM:
            gc.freeze()
        return problem


def save_problem(problem: Problem, path: Path) -> None:
    """Write `problem` to `path`, whole or not at all."""
    write_sealed(path, problem_text(problem))


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
            rows = ",\n".join(f"{pad}  {_line(_without_defaults(row, _ROWS[key]))}" for row in value)
            text = f"[\n{rows}\n{pad}]"
        elif key == "cluster":
            text = _block(value, depth + 1)
        else:
            text = _line(value)
        lines.append(f"{pad}{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


def _without_defaults(row: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    usual = _defaults(kind)  # type: ignore[arg-type]
    return {key: value for key, value in row.items() if key not in usual or value != usual[key]}


@cache
def _defaults(kind: type[Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {}
    for field in fields(kind):
        if field.default is not MISSING:
            usual[field.name] = plain(field.default)
        elif field.default_factory is not MISSING:
            usual[field.name] = plain(field.default_factory())
    return usual


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
