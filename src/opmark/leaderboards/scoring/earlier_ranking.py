"""Rank a track from the costs of an earlier ranking: only problems with a changed file or answer are simulated again.

A problem is known by the contents of its file, of all answers to it, and of the code that judges and draws them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import opmark.leaderboards
from opmark.core.canonical import plain
from opmark.core.errors import OpMarkError
from opmark.core.files import json_text, sha256, write_sealed
from opmark.core.reading import LARGE_BYTES
from opmark.core.schema import load
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import solution_in
from opmark.leaderboards.scoring.metric import Drawn
from opmark.leaderboards.scoring.standings import Standings, drawn_costs, rank_costs, single_cost, solution_costs
from opmark.leaderboards.scoring.track import Track, problem_name
from opmark.leaderboards.simulator.evaluation import Evaluation

SCHEMA = 1
# The rooms whose code decides a cost or a draw, and files of other rooms that do.
_CODE = ("problem", "simulator", "scoring")
_CODE_FILES = ("search/single.py",)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProblem:
    """The cost of every entry's answer or the reason why it has none, the drawn costs, and that of a single device."""

    key: str
    single: int | None
    costs: Mapping[str, int | str]
    drawn: Mapping[str, Drawn] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    problems: Mapping[str, KnownProblem]


def rank_from_earlier(
    track: Track, folder: Path, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> Standings:
    """As `track.standings()`; costs that `folder` knows from an earlier ranking are not simulated again.

    `progress` hears the problems done, and how many there are. Raises `NothingSelectedError` without any entry.
    """
    problems, rows = track.problems(), track.ready_rows()
    paths = {problem_name(path): path for path in track.problem_paths()}
    path = folder / f"{track.name}.json"
    before = _read(path)
    known: dict[str, KnownProblem] = {}
    for number, problem in enumerate(problems):
        progress(number, len(problems))
        answers = {entry: given if isinstance(given, str) else given.get(problem.name) for entry, given in rows.items()}
        key = _key(sha256(paths[problem.name]), answers)
        earlier = before.get(problem.name)
        known[problem.name] = earlier if earlier and earlier.key == key else _judged(problem, answers, key)
    progress(len(problems), len(problems))
    if known != before:
        write_sealed(path, json_text({"schema": SCHEMA, "problems": plain(known)}))
    costs = {(entry, name): cost for name, one in known.items() for entry, cost in one.costs.items()}
    drawn = {(entry, name): cost for name, one in known.items() for entry, cost in one.drawn.items()}
    singles = {name: one.single for name, one in known.items()}
    good = track.rules.good
    return track.with_runs(
        rank_costs(problems, sorted(rows), costs, drawn, track=track.name, good=good, singles=singles)
    )


def _judged(problem: Problem, answers: Mapping[str, Any], key: str) -> KnownProblem:
    solutions = {
        entry: row if isinstance(row, str) else solution_in(row, problem, entry=entry)
        for entry, row in answers.items()
        if row is not None
    }
    judged = solution_costs(problem, {entry: solutions.get(entry) for entry in answers})
    drawn = drawn_costs([problem], sorted(answers), {(entry, problem.name): one for entry, one in judged.items()})
    return KnownProblem(
        key=key,
        single=single_cost(problem),
        costs={entry: one.cost if isinstance(one, Evaluation) else one for entry, one in judged.items()},
        drawn={entry: one for (entry, _), one in drawn.items()},
    )


def _key(problem: str, answers: Mapping[str, Any]) -> str:
    text = json.dumps([_code(), problem, answers], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _code() -> str:
    """A hash of the code that judges and draws answers, and of numpy's version, which draws the random numbers."""
    import numpy as np

    found = hashlib.sha256(np.__version__.encode())
    room = Path(opmark.leaderboards.__file__).parent
    paths = [path for name in _CODE for path in (room / name).rglob("*.py")]
    for path in sorted([*paths, *(room / name for name in _CODE_FILES)]):
        found.update(path.read_bytes())
    return found.hexdigest()


def _read(path: Path) -> Mapping[str, KnownProblem]:
    """The problems in a file; none where it is missing or damaged."""
    if not path.is_file():
        return {}
    try:
        return load(path, _File, schema=SCHEMA, sealed=True, at_most=LARGE_BYTES).problems
    except OpMarkError:
        return {}
