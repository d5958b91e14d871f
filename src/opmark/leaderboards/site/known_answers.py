"""Answers that an earlier site has shown: simulated once, then read from a file of the workspace's cache.

An answer is known by the contents of its problem, of its solution, and of the code that judges and draws it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import opmark.leaderboards
from opmark.core.canonical import content_id
from opmark.core.errors import OpMarkError
from opmark.core.files import sha256, write_bytes
from opmark.core.reading import read_json
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.metric import Drawn
from opmark.leaderboards.scoring.splits import STANDINGS
from opmark.leaderboards.scoring.standings import Standings, drawn_costs, rank_costs
from opmark.leaderboards.scoring.track import Track, problem_name
from opmark.leaderboards.simulator.evaluation import Evaluation, evaluate
from opmark.leaderboards.site.timeline import timeline_of
from opmark.pages.gantt import GanttTimeline
from opmark.pages.gantt_columns import columns_of, timeline_in

# With more bars a chart is unreadable, and its page is slow on a phone.
BARS_AT_MOST = 6_000
_CODE = ("problem", "simulator", "scoring")
_CODE_FILES = ("making/prediction_error.py", "site/known_answers.py", "site/timeline.py")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAnswer:
    """The cost of an answer or the reason why it has none, its drawn costs, and its schedule where it can be drawn."""

    cost: int | None
    reason: str = ""
    drawn: Drawn | None = None
    timeline: GanttTimeline | None = None


def shown_answers(
    track: Track, folder: Path | None, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> tuple[Standings, dict[Key, GanttTimeline]]:
    """A track's standings and schedules, by entry and problem; what `folder` knows already is not simulated again.

    `progress` hears the problems done, and how many there are. Raises `NothingSelectedError` without solutions.
    """
    problems, solutions = track.problems(), track.solutions()
    paths = {problem_name(path): path for path in track.problem_paths()}
    contents = {one.name: content_id(one) if one.name not in paths else sha256(paths[one.name]) for one in problems}
    path = None if folder is None else folder / f"{track.name}.json.gz"
    before = {} if path is None else _read(path)
    told = _told_draws(track)
    known = dict(before)
    shown: dict[str, KnownAnswer] = {}
    found: dict[Key, KnownAnswer] = {}
    for number, problem in enumerate(problems):
        progress(number, len(problems))
        # Answers to a pool are held against each other in every draw, so a new one changes what is known of all.
        beside = [given.get(problem.name) for given in solutions.values()] if problem.limits else []
        of_problem = content_id([_code(), contents[problem.name], *beside])
        keys = {name: _key_of(of_problem, given.get(problem.name)) for name, given in solutions.items()}
        fresh = {name: solutions[name].get(problem.name) for name, key in keys.items() if key not in known}
        # Equal answers are judged once, except in a pool, where an answer counts as often as it was given.
        alike = {name if problem.limits else keys[name]: name for name in fresh}
        judged = _judged(problem, {name: fresh[name] for name in alike.values()}, told)
        known |= {keys[name]: _named(answer, keys[name]) for name, answer in judged.items()}
        shown |= {key: known[key] for key in keys.values()}
        found |= {(name, problem.name): known[key] for name, key in keys.items()}
    progress(len(problems), len(problems))
    if path is not None and shown.keys() != before.keys():
        _write(path, shown)
    costs = {key: answer.reason if answer.cost is None else answer.cost for key, answer in found.items()}
    drawn = {key: answer.drawn for key, answer in found.items() if answer.drawn is not None}
    standings = rank_costs(problems, sorted(solutions), costs, drawn, track=track.name, good=track.rules.good)
    timelines = {key: answer.timeline for key, answer in found.items() if answer.timeline is not None}
    return track.with_runs(standings), timelines


def _key_of(of_problem: str, answer: Solution | str | None) -> str:
    """A name for an answer, whoever gave it: its text, which takes less time than its JSON, and that of the problem."""
    if isinstance(answer, Solution):
        answer = replace(answer, placer="")
    return hashlib.sha256(f"{of_problem} {answer!r}".encode()).hexdigest()[:32]


def _told_draws(track: Track) -> dict[Key, tuple[int, Drawn]]:
    """The cost and the drawn costs of every answer in the track's standings; none where they are damaged.

    Draws are a hundred simulations of an answer, and ranking a track has made them already.
    """
    path = track.folder / STANDINGS
    if not path.is_file():
        return {}
    try:
        return {
            (row["name"], result["problem"]): (result["cost"], Drawn(**{"won": None, **result["drawn"]}))
            for row in read_json(path)["rows"]
            for result in row["results"]
            if "drawn" in result
        }
    except (OpMarkError, TypeError, LookupError):
        return {}


def _judged(
    problem: Problem, solutions: Mapping[str, Solution | str | None], told: Mapping[Key, tuple[int, Drawn]]
) -> dict[str, KnownAnswer]:
    """Simulate `solutions`; one that costs what the standings tell has the drawn costs `told` there."""
    outcomes: dict[Key, Evaluation | str] = {}
    for name, solution in solutions.items():
        if not isinstance(solution, Solution):
            outcomes[name, problem.name] = solution or "no solution was submitted"
            continue
        try:
            outcomes[name, problem.name] = evaluate(problem, solution)
        except OpMarkError as error:
            outcomes[name, problem.name] = str(error)
    drawn = {
        key: told[key][1]
        for key, outcome in outcomes.items()
        if isinstance(outcome, Evaluation) and told.get(key, (None,))[0] == outcome.cost
    }
    undrawn = [name for name in solutions if (name, problem.name) not in drawn]
    rivals = {entry for entry, name in told if name == problem.name}
    valid = {name for name, _ in outcomes if isinstance(outcomes[name, problem.name], Evaluation)}
    if problem.limits and (valid.intersection(undrawn) or not rivals <= set(solutions)):
        undrawn = list(solutions)  # answers to a pool are held against each other
    drawn |= drawn_costs([problem], undrawn, outcomes)
    answers = {}
    for (name, _), outcome in outcomes.items():
        if isinstance(outcome, str):
            answers[name] = KnownAnswer(cost=None, reason=outcome)
            continue
        timeline = timeline_of(problem, outcome)
        answers[name] = KnownAnswer(
            cost=outcome.cost,
            drawn=drawn.get((name, problem.name)),
            timeline=timeline if len(timeline.bars) <= BARS_AT_MOST else None,
        )
    return answers


def _named(answer: KnownAnswer, key: str) -> KnownAnswer:
    timeline = None if answer.timeline is None else replace(answer.timeline, key=key)
    return replace(answer, timeline=timeline)


@cache
def _code() -> str:
    """A hash of the code that judges and draws answers."""
    found = hashlib.sha256()
    room = Path(opmark.leaderboards.__file__).parent
    paths = [path for name in _CODE for path in (room / name).rglob("*.py")]
    for path in sorted([*paths, *(room / name for name in _CODE_FILES)]):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _read(path: Path) -> dict[str, KnownAnswer]:
    """The answers in a file; none where it is missing or damaged."""
    try:
        rows: Mapping[str, Sequence[Any]] = read_json(path)
        return {
            key: KnownAnswer(
                cost=cost,
                reason=reason,
                drawn=None if drawn is None else Drawn(median=drawn[0], p95=drawn[1], won=drawn[2]),
                timeline=None if columns is None else timeline_in(columns, key=key),
            )
            for key, (cost, reason, drawn, columns) in rows.items()
        }
    except (OpMarkError, ValueError, TypeError, LookupError, AttributeError, OSError):
        return {}


def _write(path: Path, known: Mapping[str, KnownAnswer]) -> None:
    import gzip
    import json

    rows = {
        key: (
            answer.cost,
            answer.reason,
            None if answer.drawn is None else (answer.drawn.median, answer.drawn.p95, answer.drawn.won),
            None if answer.timeline is None else columns_of(answer.timeline),
        )
        for key, answer in known.items()
    }
    # The best compression takes ten times as long, and nobody keeps this file.
    write_bytes(path, gzip.compress(json.dumps(rows, separators=(",", ":")).encode(), compresslevel=1, mtime=0))
