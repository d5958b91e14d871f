"""Make the problems of a track: try the candidates of its recipe, and keep those in which a placer can win something.

A problem whose content did not change keeps its file, and a candidate that was left out is not judged again. So an
interrupted run continues where it stopped, and new predictors change only the problems that depend on them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.core.errors import OpMarkError, PlacementError, SubmissionError
from opmark.core.files import json_text, write_sealed
from opmark.core.schema import load
from opmark.core.workspace import Workspace
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.response_time import guarantee_ns
from opmark.leaderboards.making.instances import Sources, problem_of
from opmark.leaderboards.making.recipe import Candidate, Recipe, load_recipe
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import attempt
from opmark.leaderboards.scoring.track import Track, load_track, problem_name
from opmark.leaderboards.search.single import best_single_device

SCHEMA = 1
LEFT_OUT = "left-out.json"
MADE, KEPT, LEFT, WAITS = "made", "kept", "left out", "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of one candidate: `made`, `kept`, `left out` or `waits`, the last two with a reason.

    `headroom` is the extra cost of the best single device over the best known cost, as a fraction of the latter. It is
    None where no single device holds the problem.
    """

    name: str
    status: str
    units: int = 0
    headroom: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeftOut:
    """A candidate that was left out: the id of its problem, its headroom, and the reason."""

    problem: str
    headroom: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeftOutFile:
    left_out: Mapping[str, _LeftOut]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    best: int
    single: int | None
    winner: str

    @property
    def headroom(self) -> float | None:
        return None if self.single is None else (self.single - self.best) / self.best


def make_track(workspace: Workspace, name: str, *, again: bool = False) -> Iterator[Step]:
    """Try the candidates of the track `name` one by one; yields the result of each.

    A candidate `waits` while its predictors or packages are missing. With `again` every candidate is judged again.
    Raises `UnknownNameError` for an unknown track, `ContentError` for a wrong recipe, cluster or device file.
    """
    track = load_track(workspace.leaderboards, name)
    recipe = load_recipe(track.folder)
    sources = Sources(workspace=workspace)
    left = _read_left_out(track.folder)
    for candidate in recipe.candidates:
        step, row = _one(candidate, recipe, sources, track, left={} if again else left)
        if row is None:
            left.pop(candidate.title, None)
        else:
            left[candidate.title] = row
        _write_left_out(track.folder, left, recipe)
        yield step


def judge(problem: Problem, recipe: Recipe) -> _Judged:
    """The best cost of the recipe's judges and the best single device. Raises `PlacementError` if nothing fits."""
    try:
        _, single = best_single_device(problem)
    except PlacementError:
        single = None
    found = {} if single is None else {"best-single-device": single}
    for name in recipe.judges:
        try:
            found[name] = attempt(problem, name, budget_s=recipe.judge_s, seed=recipe.seed).evaluation.cost
        except SubmissionError:  # a list placer that ignores memory may find no answer that fits
            continue
    if not found:
        raise PlacementError("no placer found anything that fits", where=problem.name)
    winner = min(found, key=lambda name: (found[name], name))
    return _Judged(best=found[winner], single=single, winner=winner)


def _one(
    candidate: Candidate,
    recipe: Recipe,
    sources: Sources,
    track: Track,
    *,
    left: Mapping[str, _LeftOut],
) -> tuple[Step, _LeftOut | None]:
    """The result of a candidate, and its row in the list of those left out."""
    name = candidate.title
    path = track.path_of(name, candidate.split)
    try:
        problem = problem_of(candidate, recipe, sources, track.rules.objective)
    except OpMarkError as error:
        if path.is_file():
            return Step(name=name, status=KEPT, reason=error.message), None
        return Step(name=name, status=WAITS, reason=error.message), None
    units = len(problem.units)
    before = left.get(name)
    if before is not None and before.problem == problem.id:
        return Step(name=name, status=LEFT, units=units, headroom=before.headroom, reason=before.reason), before
    if before is None and path.is_file() and load_problem(path).id == problem.id:
        return Step(name=name, status=KEPT, units=units), None
    try:
        judged = judge(problem, recipe)
    except PlacementError as error:
        path.unlink(missing_ok=True)
        row = _LeftOut(problem=problem.id, headroom=None, reason=error.message)
        return Step(name=name, status=LEFT, units=units, reason=error.message), row
    headroom = judged.headroom
    if headroom is not None and headroom < recipe.headroom_at_least:
        reason = f"the best single device is within {recipe.headroom_at_least:.0%} of the best known"
        path.unlink(missing_ok=True)
        row = _LeftOut(problem=problem.id, headroom=round(headroom, 4), reason=reason)
        return Step(name=name, status=LEFT, units=units, headroom=headroom, reason=reason), row
    save_problem(replace(problem, reference=_reference(problem, judged)), path)
    for other in track.problem_paths():
        if problem_name(other) == name and other != path:
            other.unlink()  # the recipe moved it to another split
    return Step(name=name, status=MADE, units=units, headroom=headroom), None


def _reference(problem: Problem, judged: _Judged) -> ReferenceCosts:
    proved = bounds(problem)
    return ReferenceCosts(
        bound_ns=max(proved.values(), default=0),
        best_known_ns=judged.best,
        source=judged.winner,
        bounds=proved,
        guarantee_ns=guarantee_ns(problem),
    )


def _read_left_out(folder: Path) -> dict[str, _LeftOut]:
    path = folder / LEFT_OUT
    return dict(load(path, _LeftOutFile, schema=SCHEMA, sealed=True).left_out) if path.is_file() else {}


def _write_left_out(folder: Path, rows: Mapping[str, _LeftOut], recipe: Recipe) -> None:
    """Write the rows in the order of the recipe, without candidates that it no longer names."""
    names = [candidate.title for candidate in recipe.candidates]
    kept = {name: rows[name] for name in names if name in rows}
    path = folder / LEFT_OUT
    if kept or path.is_file():
        write_sealed(path, json_text({"schema": SCHEMA, "left_out": kept}))
