"""The stored answers of one entry: `solutions/<entry>.json.gz` of a track, with a row per problem.

A row lists values in the order of the problem's units; a hash of the unit names shows that the problem is still the
same. A solution that splits or recomputes units, is a front, or does not name every unit exactly once, is stored with
its names.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.core.canonical import content_id, plain
from opmark.core.errors import ContentError
from opmark.core.files import write_text
from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import convert, load
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem

SCHEMA = 1
SUFFIX = ".json.gz"
# A value whose JSON is at most this long stays on one line.
WIDTH = 400
Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """A solution by numbers; `units` is the hash of the unit names that the numbers refer to."""

    units: str
    devices: tuple[str, ...]
    device: tuple[int, ...]
    priority: tuple[int, ...] | None = None
    order: Mapping[str, tuple[int, ...]] | None = None
    replicas: Mapping[str, tuple[str, ...]] | None = None
    schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    answers: Mapping[str, Any]


def read_rows(path: Path) -> dict[str, Mapping[str, Any]]:
    """The rows of a file by problem, not yet decoded; empty without a file. Raises `ContentError`."""
    return dict(load(path, _File, schema=SCHEMA, at_most=LARGE_BYTES).answers) if path.is_file() else {}


def write_rows(path: Path, rows: Rows) -> None:
    """Write the rows in order of problem name, whole or not at all."""
    write_text(path, row_text({"schema": SCHEMA, "answers": dict(sorted(rows.items()))}))


def row_of(solution: Solution, problem: Problem | None) -> dict[str, Any]:
    """`solution` as a row: numbers, or names where it does not fit `problem`."""
    names = [unit.name for unit in problem.units] if problem else []
    number = {name: place for place, name in enumerate(names)}
    order = solution.order or {}
    columns = (solution.device, *([] if solution.priority is None else [solution.priority]))
    plainly = problem is not None and not solution.splits and not solution.recompute and not solution.front
    fits = plainly and all(column.keys() == number.keys() for column in columns)
    if not fits or any(name not in number for row in order.values() for name in row):
        kept = plain(solution)
        said = ("device", "priority", "order", "replicas", *(("schedule",) if solution.schedule else ()))
        return {key: kept[key] for key in (*said, "splits", "recompute", "front") if kept[key] is not None}
    devices = sorted(set(solution.device.values()))
    row: dict[str, Any] = {
        "units": content_id(names),
        "devices": devices,
        "device": [devices.index(solution.device[name]) for name in names],
    }
    if solution.priority is not None:
        row["priority"] = [solution.priority[name] for name in names]
    if solution.order is not None:
        row["order"] = {device: [number[name] for name in units] for device, units in solution.order.items()}
    if solution.replicas is not None:
        row["replicas"] = plain(solution.replicas)
    if solution.schedule:
        row["schedule"] = solution.schedule
    return row


def solution_in(row: Any, problem: Problem, *, entry: str = "") -> Solution | str:
    """Decode the solution of `problem` in a row; returns one sentence where the row holds none."""
    if not isinstance(row, Mapping):
        return "its stored answer is not a mapping"
    try:
        if "units" not in row:
            return convert({**row, "problem": problem.name, "placer": entry}, Solution, where=problem.name)
        counted = convert(dict(row), _Counted, where=problem.name)
        names = [unit.name for unit in problem.units]
        if counted.units != content_id(names):
            return "its stored answer is for another version of this problem"
        return Solution(
            device=dict(zip(names, _picked(counted.device, counted.devices), strict=True)),
            priority=None if counted.priority is None else dict(zip(names, counted.priority, strict=True)),
            order=None
            if counted.order is None
            else {device: tuple(_picked(units, names)) for device, units in counted.order.items()},
            replicas=counted.replicas,
            schedule=counted.schedule,
            problem=problem.name,
            placer=entry,
        )
    except ContentError as error:
        return error.message
    except (IndexError, ValueError):
        return "its stored answer refers to units or devices that this problem does not have"


def _picked(numbers: Sequence[int], names: Sequence[str]) -> list[str]:
    if any(number < 0 for number in numbers):
        raise IndexError
    return [names[number] for number in numbers]


def row_text(value: Any) -> str:
    """JSON text with one row per line: a value stays on one line up to `WIDTH` characters (dataclasses allowed)."""
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
    """True where an item has items of its own: a long list of numbers is still one row."""
    return any(isinstance(item, (dict, list)) for item in (value.values() if isinstance(value, dict) else value))
