"""Records of runs: `runs.json.gz` of a track. Standings never depend on them."""

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opmark.core.canonical import plain
from opmark.core.errors import ContentError
from opmark.core.files import write_json
from opmark.core.reading import LARGE_BYTES, read_json
from opmark.core.schema import check_schema, convert
from opmark.leaderboards import placers

SCHEMA = 1
FILE = "runs.json.gz"
_ORIGIN = frozenset({"paper", "own"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One entry's run on one problem: its conditions, its times in seconds, and the reason of a failure.

    `problem` is the problem's id. `code` identifies the entry's code. `layers` lists the sandbox's protections.
    """

    problem: str
    code: str
    budget_s: float
    seed: int
    planning_s: float | None = None
    answered_s: float | None = None
    reason: str = ""
    layers: tuple[str, ...] = ()

    def asks_the_same(self, other: "RunRecord") -> bool:
        """True where `other` has the same problem, code, budget and seed."""
        mine, theirs = (self.problem, self.code, self.budget_s, self.seed), other
        return mine == (theirs.problem, theirs.code, theirs.budget_s, theirs.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    runs: Mapping[str, Mapping[str, RunRecord]] = field(default_factory=dict)


def read_runs(path: Path) -> dict[str, dict[str, RunRecord]]:
    """Records by entry and problem; empty without a file. Raises `ContentError` for a wrong one."""
    content = read_json(path, at_most=LARGE_BYTES) if path.is_file() else {}
    if not isinstance(content, dict):
        raise ContentError("expected a mapping at the top", where=str(path))
    if "schema" not in content:
        return {}  # the first version stored seconds only, which do not identify a run
    check_schema(content, SCHEMA, path)
    found = convert({key: value for key, value in content.items() if key != "schema"}, _File, where=str(path))
    return {entry: dict(row) for entry, row in found.runs.items()}


def write_runs(path: Path, runs: Mapping[str, Mapping[str, RunRecord]]) -> None:
    """Write all records, sorted by entry and problem."""
    ordered = {entry: dict(sorted(row.items())) for entry, row in sorted(runs.items())}
    write_json(path, {"schema": SCHEMA, "runs": plain(ordered)})


def code_of_placer(name: str) -> str:
    """A hash of the file of one of OpMark's own placers; the name itself for any other entry.

    The origin of an algorithm (`paper`, `own`) changes no answer, and is no part of it.
    """
    path = Path(placers.__path__[0]) / f"{name.replace('-', '_')}.py"
    if not path.is_file():
        return name
    return hashlib.sha256(without_origin(path.read_text(encoding="utf-8")).encode()).hexdigest()[:16]


def without_origin(source: str) -> str:
    """The source of a placer without the lines that set `paper` or `own` in a class."""
    lines = source.splitlines(keepends=True)
    for found in ast.walk(ast.parse(source)):
        if isinstance(found, ast.ClassDef):
            for part in found.body:
                if isinstance(part, ast.Assign) and {ast.unparse(one) for one in part.targets} & _ORIGIN:
                    end = part.end_lineno or part.lineno
                    lines[part.lineno - 1 : end] = [""] * (end - part.lineno + 1)
    return "".join(lines)
