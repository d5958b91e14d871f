"""A track: its rules, its problems, and the stored answers of every entry."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError
from opmark.core.files import write_text
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.response_time import guarantee_ns
from opmark.leaderboards.making.recipe import SPLITS
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import SUFFIX, read_rows, row_of, solution_in, write_rows
from opmark.leaderboards.scoring.row_text import row_text
from opmark.leaderboards.scoring.run_record import FILE as RUNS
from opmark.leaderboards.scoring.run_record import RunRecord, read_runs, write_runs
from opmark.leaderboards.scoring.standings import Standings, rank_solutions
from opmark.leaderboards.scoring.time_limit import budget_by_size_s

SCHEMA = 1
REFERENCES = "references.json"
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
    """A folder with `track.yaml`, `problems/`, `solutions/<entry>.json.gz` and `standings.json`.

    `problems/` is public; problems of other model families may stand in `validation/`, where only scores are shown.
    A problem is a `.json.gz` file or a plain `.json` one. `given` are problems that exist only in memory: hidden ones.
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
        folders = [self.folder / SPLIT_FOLDERS[split] for split in SPLITS]
        return [
            path
            for folder in folders
            for path in sorted((*folder.glob("*.json"), *folder.glob(f"*{SUFFIX}")), key=problem_name)
        ]

    def path_of(self, problem: str, split: str = "") -> Path:
        """The file of a problem; where it would stand in `split` (default: public) if there is none yet."""
        known = [path for path in self.problem_paths() if problem_name(path) == problem]
        wanted = [path for path in known if split in ("", self._split(path))]
        return wanted[0] if wanted else self.folder / SPLIT_FOLDERS[split or "public"] / f"{problem}{SUFFIX}"

    def split_of(self, problem: str) -> str:
        """To which split the problem of that name belongs."""
        return "hidden" if self.given else self._split(self.path_of(problem))

    def problems(self, split: str = "") -> tuple[Problem, ...]:
        """Every problem (of one split), by file name.

        Raises `NothingSelectedError` without one, `ContentError` for a wrong one.
        """
        if self.given:
            return self.given
        paths = [path for path in self.problem_paths() if split in ("", self._split(path))]
        if not paths:
            raise NothingSelectedError("this track has no problems yet", where=str(self.folder / "problems"))
        names = [problem_name(path) for path in paths]
        for name, path in zip(names, paths, strict=True):
            if names.count(name) > 1:
                raise ContentError(f"there is more than one problem {name!r}", where=str(path), hint="remove one")
        return tuple(map(_read_problem, paths))

    def solutions(self) -> dict[str, dict[str, Solution | str]]:
        """Stored answers by entry and problem; an unreadable one is a sentence."""
        found: dict[str, dict[str, Solution | str]] = {}
        paths = sorted((self.folder / "solutions").glob(f"*{SUFFIX}"))
        problems = self.problems() if paths else ()
        for path in paths:
            entry = problem_name(path)
            try:
                rows = read_rows(path)
            except OpMarkError as error:
                found[entry] = dict.fromkeys((problem.name for problem in problems), error.message)
                continue
            found[entry] = {
                problem.name: solution_in(rows[problem.name], problem, entry=entry)
                for problem in problems
                if problem.name in rows
            }
        return found

    def store(self, entry: str, problem: str, solution: Solution | None) -> None:
        """Keep an entry's answer to a problem; None removes it. An entry without any answer stays an entry."""
        path = self._answers(entry)
        rows = read_rows(path)
        rows.pop(problem, None)
        if solution is not None:
            rows[problem] = row_of(solution, self._known(problem))
        write_rows(path, rows)

    def standings(self) -> Standings:
        """The ranking of what is stored. Raises `NothingSelectedError` where nothing is."""
        solutions = self.solutions()
        if not solutions:
            raise NothingSelectedError(
                "no entry has a stored solution",
                where=str(self.folder / "solutions"),
                hint=f"run `opmark leaderboards score --track {self.name}` first",
            )
        runs = {(entry, name): run for entry, row in self.runs().items() for name, run in row.items()}
        seconds = {key: run.planning_s for key, run in runs.items() if run.planning_s is not None}
        reasons = {key: run.reason for key, run in runs.items() if run.reason}
        found = rank_solutions(self.problems(), solutions, track=self.name)
        return replace(found, planning_s=seconds, reasons=reasons)

    def write_standings(self, standings: Standings) -> Path:
        """Write `standings.json`, which follows from the stored solutions alone."""
        path = self.folder / "standings.json"
        write_text(path, row_text(standings.file()))
        return path

    def has_answer(self, entry: str, problem: str) -> bool:
        """Whether an entry's answer to a problem is stored."""
        return problem in read_rows(self._answers(entry))

    def runs(self) -> dict[str, dict[str, RunRecord]]:
        """How answers came to be, by entry and problem."""
        return read_runs(self.folder / RUNS)

    def record_run(self, entry: str, problem: str, record: RunRecord) -> None:
        """Remember how an answer came to be, or why there is none."""
        runs = self.runs()
        runs.setdefault(entry, {})[problem] = record
        write_runs(self.folder / RUNS, runs)

    def planning(self) -> dict[str, dict[str, float]]:
        """Planning times in seconds by entry and problem."""
        return {
            entry: {problem: record.planning_s for problem, record in row.items() if record.planning_s is not None}
            for entry, row in self.runs().items()
        }

    def _answers(self, entry: str) -> Path:
        return self.folder / "solutions" / f"{entry}{SUFFIX}"

    def _known(self, problem: str) -> Problem | None:
        if self.given:
            return next((item for item in self.given if item.name == problem), None)
        path = self.path_of(problem)
        return _read_problem(path) if path.is_file() else None

    def _split(self, path: Path) -> str:
        return next((split for split, folder in SPLIT_FOLDERS.items() if folder == path.parent.name), "public")


def problem_name(path: Path) -> str:
    """The name that a file of problems or answers is called by."""
    return path.name.removesuffix(SUFFIX).removesuffix(".json")


def _read_problem(path: Path) -> Problem:
    status = path.stat()
    problem = _loaded(path, status.st_mtime_ns, status.st_ino, status.st_size)
    if problem.name != problem_name(path):
        raise ContentError(f"the problem is called {problem.name!r}, not like its file", where=f"{path}: name")
    return problem


@lru_cache(maxsize=512)
def _loaded(path: Path, _changed_ns: int, _number: int, _size_bytes: int) -> Problem:
    """A file's problem, read again only when the file is another one."""
    return load_problem(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    references: Mapping[str, ReferenceCosts]


def load_track(leaderboards: Path, name: str) -> Track:
    """The track called `name` in a `leaderboards/` folder. Raises `UnknownNameError` or `ContentError`."""
    names = track_names(leaderboards)
    if name not in names:
        raise unknown_name("track", name, names)
    return Track(folder=leaderboards / name, rules=load(leaderboards / name / "track.yaml", Rules, schema=SCHEMA))


def track_names(leaderboards: Path) -> tuple[str, ...]:
    """Every folder that holds a `track.yaml`."""
    return tuple(sorted(path.parent.name for path in leaderboards.glob("*/track.yaml")))


def freeze_track(track: Track, *, again: Container[str] = ()) -> dict[str, ReferenceCosts]:
    """Give every problem without a reference its lower bound and the best stored cost; returns what was frozen.

    From then on a rival's entry moves nobody's score; those of hidden instances, which are in no file, stand in
    `references.json`. A problem that nobody solved stays as it is. For a new version of the track, a reference that a
    stored answer beats is replaced where `again` holds the problem's name. The standings are written beside the
    references that they then follow from.
    """
    frozen: dict[str, ReferenceCosts] = {}
    standings = track.standings()
    rows = standings.rows
    for problem in track.problems():
        results = [result for row in rows for result in row.results if result.problem == problem.name]
        best = min((result.cost for result in results if result.cost is not None), default=None)
        known = problem.reference
        if best is not None and (known is None or (problem.name in again and best < known.best_known_ns)):
            found = ReferenceCosts(
                bound_ns=results[0].bound,
                best_known_ns=best,
                source="stored solutions",
                bounds=bounds(problem),
                guarantee_ns=guarantee_ns(problem),
            )
            if not track.given:
                save_problem(replace(problem, reference=found), track.path_of(problem.name))
            frozen[problem.name] = found
    if track.given and frozen:
        given = tuple(
            replace(problem, reference=frozen.get(problem.name) or problem.reference) for problem in track.given
        )
        kept = {problem.id: problem.reference for problem in given if problem.reference}
        write_text(track.folder / REFERENCES, row_text({"schema": SCHEMA, "references": kept}))
        track = replace(track, given=given)
    track.write_standings(track.standings() if frozen else standings)
    return frozen


def read_references(path: Path) -> dict[str, ReferenceCosts]:
    """What hidden instances are judged against, by problem id; nothing where nothing was frozen."""
    return dict(load(path, _References, schema=SCHEMA).references) if path.is_file() else {}
