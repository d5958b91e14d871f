"""A track: its rules, its problems, and the stored answers of every entry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError
from opmark.core.files import read_json, write_json
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.leaderboards.placement import Solution, load_solution, save_solution, solution_of
from opmark.leaderboards.problem import Problem, Reference, load_problem, save_problem
from opmark.leaderboards.standings import Standings, rank_solutions, score_placers

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What `track.yaml` says."""

    title: str
    version: str
    description: str = ""
    objective: str = "latency"
    semantics: str = "opsim1"
    budget_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A folder with `track.yaml`, `problems/`, `solutions/<entry>/<problem>.json` and `standings.json`."""

    folder: Path
    rules: Rules

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    def problem_paths(self) -> list[Path]:
        """The files of its problems, by name."""
        return sorted((self.folder / "problems").glob("*.json"))

    def problems(self) -> tuple[Problem, ...]:
        """Every problem, by file name. Raises `NothingSelectedError` without one, `ContentError` for a wrong one."""
        paths = self.problem_paths()
        if not paths:
            raise NothingSelectedError("this track has no problems yet", where=str(self.folder / "problems"))
        problems = tuple(load_problem(path) for path in paths)
        for path, problem in zip(paths, problems, strict=True):
            if problem.name != path.stem:
                raise ContentError(f"the problem is called {problem.name!r}, not like its file", where=f"{path}: name")
        return problems

    def solutions(self) -> dict[str, dict[str, Solution | str]]:
        """Stored answers by entry and problem; an unreadable one is a sentence."""
        found: dict[str, dict[str, Solution | str]] = {}
        for path in sorted((self.folder / "solutions").glob("*/*.json")):
            try:
                answer: Solution | str = load_solution(path)
            except OpMarkError as error:
                answer = error.message
            found.setdefault(path.parent.name, {})[path.stem] = answer
        return found

    def store(self, entry: str, problem: str, solution: Solution | None) -> None:
        """Keep an entry's answer to a problem; None removes it."""
        path = self.folder / "solutions" / entry / f"{problem}.json"
        if solution is None:
            path.unlink(missing_ok=True)
        else:
            save_solution(solution, path)

    def standings(self) -> Standings:
        """The ranking of what is stored. Raises `NothingSelectedError` where nothing is."""
        solutions = self.solutions()
        if not solutions:
            raise NothingSelectedError(
                "no entry has a stored solution",
                where=str(self.folder / "solutions"),
                hint=f"run `opmark leaderboards score --track {self.name}` first",
            )
        seconds = {(entry, name): value for entry, row in self.planning().items() for name, value in row.items()}
        return replace(rank_solutions(self.problems(), solutions, track=self.name), planning_s=seconds)

    def write_standings(self, standings: Standings) -> Path:
        """Write `standings.json`, which follows from the stored solutions alone."""
        path = self.folder / "standings.json"
        write_json(path, standings.file())
        return path

    def record_planning(self, seconds: dict[tuple[str, str], float]) -> None:
        """Add planning times to `runs.json`: {entry: {problem: seconds}}."""
        path = self.folder / "runs.json"
        runs = self.planning()
        for (entry, problem), value in seconds.items():
            runs.setdefault(entry, {})[problem] = round(value, 6)
        write_json(path, runs)

    def planning(self) -> dict[str, dict[str, float]]:
        """Planning times in seconds by entry and problem."""
        path = self.folder / "runs.json"
        found: dict[str, dict[str, float]] = read_json(path) if path.is_file() else {}
        return found


def load_track(leaderboards: Path, name: str) -> Track:
    """The track called `name` in a `leaderboards/` folder. Raises `UnknownNameError` or `ContentError`."""
    names = track_names(leaderboards)
    if name not in names:
        raise unknown_name("track", name, names)
    return Track(folder=leaderboards / name, rules=load(leaderboards / name / "track.yaml", Rules, schema=SCHEMA))


def track_names(leaderboards: Path) -> tuple[str, ...]:
    """Every folder that holds a `track.yaml`."""
    return tuple(sorted(path.parent.name for path in leaderboards.glob("*/track.yaml")))


def score_track(track: Track, names: Sequence[str], *, budget_s: float | None = None, seed: int = 0) -> Standings:
    """Run placers on every problem of a track, keep their answers, and rank everything that is stored.

    An answer replaces the stored one of its entry; a failed attempt removes it. `budget_s` defaults to the track's.
    """
    problems = track.problems()
    budget = track.rules.budget_s if budget_s is None else budget_s
    fresh = score_placers(problems, names, budget_s=budget, seed=seed, track=track.name)
    for name in names:
        for problem in problems:
            found = fresh.evaluations.get((name, problem.name))
            answer = None if found is None else solution_of(problem, found.placement, placer=name)
            track.store(name, problem.name, answer)
    track.record_planning(dict(fresh.planning_s))
    standings = track.standings()
    track.write_standings(standings)
    return standings


def freeze_track(track: Track) -> dict[str, Reference]:
    """Give every problem without a reference its lower bound and the best stored cost; returns what was frozen.

    From then on a rival's entry moves nobody's score. A problem that nobody solved stays as it is.
    """
    frozen = {}
    rows = track.standings().rows
    for problem in track.problems():
        results = [result for row in rows for result in row.results if result.problem == problem.name]
        best = min((result.cost for result in results if result.cost is not None), default=None)
        if problem.reference is None and best is not None:
            found = Reference(bound_ns=results[0].bound, best_known_ns=best, source="stored solutions")
            save_problem(replace(problem, reference=found), track.folder / "problems" / f"{problem.name}.json")
            frozen[problem.name] = found
    return frozen
