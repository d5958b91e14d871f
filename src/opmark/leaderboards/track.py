"""A track: its rules, its problems, and the stored answers of every entry."""

from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import NothingSelectedError, OpMarkError
from opmark.core.files import read_json, write_json
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.leaderboards.placement import Solution, load_solution, save_solution
from opmark.leaderboards.problem import Problem, load_problem
from opmark.leaderboards.standings import Standings, rank_solutions

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

    def problems(self) -> tuple[Problem, ...]:
        """Every problem, by file name. Raises `NothingSelectedError` without one, `ContentError` for a wrong one."""
        paths = sorted((self.folder / "problems").glob("*.json"))
        if not paths:
            raise NothingSelectedError("this track has no problems yet", where=str(self.folder / "problems"))
        return tuple(load_problem(path) for path in paths)

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
        return rank_solutions(self.problems(), solutions, track=self.name)

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
