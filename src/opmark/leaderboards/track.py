"""A track: its rules, its problems, and the stored answers of every entry."""

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError
from opmark.core.files import write_json
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.leaderboards.bounds import bounds
from opmark.leaderboards.placement import Solution, load_solution, save_solution
from opmark.leaderboards.problem import Problem, Reference, load_problem, save_problem
from opmark.leaderboards.response_time import guarantee_ns
from opmark.leaderboards.run_record import RunRecord, read_runs, write_runs
from opmark.leaderboards.standings import Standings, rank_solutions
from opmark.leaderboards.time_limit import budget_by_size_s

SCHEMA = 1
SPLITS = ("public", "validation")
SPLIT_FOLDERS = {"public": "problems", "validation": "validation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What `track.yaml` says.

    Without a `budget_s` the budget of a problem follows its size. `hidden_seed_sha256` commits to the seed of the
    track's hidden instances.
    """

    title: str
    version: str
    description: str = ""
    objective: str = "latency"
    semantics: str = "opsim1"
    budget_s: float | None = None
    hidden_seed_sha256: str = ""

    def budget_for(self, problem: Problem) -> float:
        """Seconds to plan in."""
        return budget_by_size_s(len(problem.units)) if self.budget_s is None else self.budget_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A folder with `track.yaml`, `problems/`, `solutions/<entry>/<problem>.json` and `standings.json`.

    `problems/` is public; problems of other model families may stand in `validation/`, where only scores are shown.
    `given` are problems that exist only in memory: hidden ones.
    """

    folder: Path
    rules: Rules
    given: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    def problem_paths(self) -> list[Path]:
        """The files of its public problems by name, then those of its validation problems."""
        return [path for split in SPLITS for path in sorted((self.folder / SPLIT_FOLDERS[split]).glob("*.json"))]

    def split_of(self, problem: str) -> str:
        """To which split the problem of that name belongs."""
        if self.given:
            return "hidden"
        return "validation" if (self.folder / SPLIT_FOLDERS["validation"] / f"{problem}.json").is_file() else "public"

    def problems(self, split: str = "") -> tuple[Problem, ...]:
        """Every problem (of one split), by file name.

        Raises `NothingSelectedError` without one, `ContentError` for a wrong one.
        """
        if self.given:
            return self.given
        paths = [
            path for path in self.problem_paths() if path.parent.name == SPLIT_FOLDERS.get(split, path.parent.name)
        ]
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
        path = self._answer(entry, problem)
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

    def has_answer(self, entry: str, problem: str) -> bool:
        """Whether an entry's answer to a problem is stored."""
        return self._answer(entry, problem).is_file()

    def runs(self) -> dict[str, dict[str, RunRecord]]:
        """How answers came to be, by entry and problem."""
        return read_runs(self.folder / "runs.json")

    def record_run(self, entry: str, problem: str, record: RunRecord) -> None:
        """Remember how an answer came to be, or why there is none."""
        runs = self.runs()
        runs.setdefault(entry, {})[problem] = record
        write_runs(self.folder / "runs.json", runs)

    def planning(self) -> dict[str, dict[str, float]]:
        """Planning times in seconds by entry and problem."""
        return {
            entry: {problem: record.planning_s for problem, record in row.items() if record.planning_s is not None}
            for entry, row in self.runs().items()
        }

    def _answer(self, entry: str, problem: str) -> Path:
        return self.folder / "solutions" / entry / f"{problem}.json"


def load_track(leaderboards: Path, name: str) -> Track:
    """The track called `name` in a `leaderboards/` folder. Raises `UnknownNameError` or `ContentError`."""
    names = track_names(leaderboards)
    if name not in names:
        raise unknown_name("track", name, names)
    return Track(folder=leaderboards / name, rules=load(leaderboards / name / "track.yaml", Rules, schema=SCHEMA))


def track_names(leaderboards: Path) -> tuple[str, ...]:
    """Every folder that holds a `track.yaml`."""
    return tuple(sorted(path.parent.name for path in leaderboards.glob("*/track.yaml")))


def freeze_track(track: Track, *, again: Container[str] = ()) -> dict[str, Reference]:
    """Give every problem without a reference its lower bound and the best stored cost; returns what was frozen.

    From then on a rival's entry moves nobody's score. A problem that nobody solved stays as it is. For a
    new version of the track, a reference that a stored answer beats is replaced where `again` holds the problem's name.
    """
    frozen = {}
    rows = track.standings().rows
    for problem in track.problems():
        results = [result for row in rows for result in row.results if result.problem == problem.name]
        best = min((result.cost for result in results if result.cost is not None), default=None)
        known = problem.reference
        if best is not None and (known is None or (problem.name in again and best < known.best_known_ns)):
            found = Reference(
                bound_ns=results[0].bound,
                best_known_ns=best,
                source="stored solutions",
                bounds=bounds(problem),
                guarantee_ns=guarantee_ns(problem),
            )
            folder = SPLIT_FOLDERS[track.split_of(problem.name)]
            save_problem(replace(problem, reference=found), track.folder / folder / f"{problem.name}.json")
            frozen[problem.name] = found
    return frozen
