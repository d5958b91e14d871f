"""A track: its rules, its problems, and the stored answers and run records of its entries."""

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError, NothingSelectedError, OpMarkError
from opmark.core.file_lock import locked
from opmark.core.files import write_sealed
from opmark.core.parallel.task_map import InTurn, MapProgress, TaskMap
from opmark.core.registry import unknown_name
from opmark.core.schema import load
from opmark.leaderboards.bounds.bounds import bounds
from opmark.leaderboards.bounds.response_time import guarantee_ns
from opmark.leaderboards.making.recipe import SECONDS_AT_MOST, SPLITS
from opmark.leaderboards.problem.checks import reference_findings
from opmark.leaderboards.problem.fields import ReferenceCosts
from opmark.leaderboards.problem.files import load_problem, save_problem
from opmark.leaderboards.problem.graph_checks import refuse
from opmark.leaderboards.problem.placement import Solution
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.answers import SUFFIX, read_rows, row_of, row_text, solution_in, write_rows
from opmark.leaderboards.scoring.attempt import budget_by_size_s
from opmark.leaderboards.scoring.run_record import FILE as RUNS
from opmark.leaderboards.scoring.run_record import RunRecord, read_runs
from opmark.leaderboards.scoring.splits import STANDINGS, Splits, hidden_scores, read_counted, splits_of
from opmark.leaderboards.scoring.standings import Standings, rank_solutions, with_counted
from opmark.leaderboards.search.placer import placing_names

SCHEMA = 1
REFERENCES = "references.json"
LOCK = ".lock"
# Older versions of a track lie in this folder of its own; TRACK@VERSION names one.
VERSIONS, AT = "versions", "@"
SPLIT_FOLDERS = {"public": "problems", "validation": "validation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The content of `track.yaml`.

    Without `budget_s` the budget of a problem depends on its size. `hidden_seed_sha256` is the hash of the seed of the
    track's hidden instances. A problem that all entries in `good` solve alike is shown, but not scored.
    `placers` are those that run by default; without them, all that place on given devices.
    """

    title: str
    version: str
    description: str = ""
    objective: str = "latency"
    semantics: str = "opsim1"
    budget_s: float | None = None
    hidden_seed_sha256: str = ""
    good: tuple[str, ...] = ()
    placers: tuple[str, ...] = ()

    def budget_for(self, problem: Problem) -> float:
        """The planning budget of a problem, in seconds."""
        return budget_by_size_s(len(problem.units)) if self.budget_s is None else self.budget_s

    def default_placers(self) -> tuple[str, ...]:
        """The placers that run where nobody names any."""
        return self.placers or placing_names()


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A folder with `track.yaml`, `problems/`, `validation/`, `solutions/<entry>.json.gz` and `standings.json`.

    Problems in `problems/` are public; those in `validation/` are of other model families, and only their scores are
    shown. A problem is a `.json.gz` or `.json` file. `given` are hidden problems, which exist in memory only.
    An older version is a folder like this in `versions/` of its track.
    """

    folder: Path
    rules: Rules
    given: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name; TRACK@VERSION for an older version."""
        return f"{self.folder.parents[1].name}{AT}{self.folder.name}" if self._is_older else self.folder.name

    @property
    def leaderboards(self) -> Path:
        """The `leaderboards/` folder of this track."""
        return self.folder.parents[2] if self._is_older else self.folder.parent

    @property
    def _is_older(self) -> bool:
        return self.folder.parent.name == VERSIONS

    def problem_paths(self) -> list[Path]:
        """The files of the public problems by name, then those of the validation problems."""
        folders = [self.folder / SPLIT_FOLDERS[split] for split in SPLITS]
        return [
            path
            for folder in folders
            for path in sorted((*folder.glob("*.json"), *folder.glob(f"*{SUFFIX}")), key=problem_name)
        ]

    def path_of(self, problem: str, split: str = "") -> Path:
        """The file of a problem, which may not exist yet, in `split` (default: where it is, else public)."""
        known = [path for path in self.problem_paths() if problem_name(path) == problem]
        wanted = [path for path in known if split in ("", self._split(path))]
        return wanted[0] if wanted else self.folder / SPLIT_FOLDERS[split or "public"] / f"{problem}{SUFFIX}"

    def problems(self, split: str = "") -> tuple[Problem, ...]:
        """All problems (of one split), by file name.

        Raises `NothingSelectedError` where there are none, `ContentError` for a wrong one.
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
        """The stored answers by entry and problem; a string is the reason for an unreadable one."""
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
        """Store an entry's answer to a problem; None removes it. An entry stays an entry without answers."""
        path = self._answers(entry)
        with self.lock():
            rows = read_rows(path)
            rows.pop(problem, None)
            if solution is not None:
                rows[problem] = row_of(solution, self._known(problem))
            write_rows(path, rows)

    def standings(self, *, draws: bool = True) -> Standings:
        """Rank the stored answers, without `draws` only by their costs. Raises `NothingSelectedError` without any.

        A submission without counted splits is being scored, and has no row yet.
        """
        ready = self._ready_paths()
        solutions = {name: rows for name, rows in self.solutions().items() if name in ready}
        good = () if self.given else self.rules.good
        return self.with_runs(rank_solutions(self.problems(), solutions, track=self.name, good=good, draws=draws))

    def ready_rows(self) -> dict[str, dict[str, Mapping[str, Any]] | str]:
        """The answers that `standings` ranks, by entry and problem, not yet decoded; a string says why there are none.

        Raises `NothingSelectedError` without any entry.
        """
        found: dict[str, dict[str, Mapping[str, Any]] | str] = {}
        for name, path in self._ready_paths().items():
            try:
                found[name] = read_rows(path)
            except OpMarkError as error:
                found[name] = error.message
        return found

    def _ready_paths(self) -> dict[str, Path]:
        """The file of answers of every entry that is not being scored now."""
        counted = {} if self.given else read_counted(self.folder)
        unready = {name for name, found in counted.items() if found is None}
        paths = {problem_name(path): path for path in sorted((self.folder / "solutions").glob(f"*{SUFFIX}"))}
        found = {name: path for name, path in paths.items() if name not in unready}
        if not found:
            raise NothingSelectedError(
                "no entry has a stored solution",
                where=str(self.folder / "solutions"),
                hint=f"run `opmark leaderboards score --track {self.name}` first",
            )
        return found

    def with_runs(self, standings: Standings) -> Standings:
        """The standings with the planning times and the reasons of failures from the records of runs.

        Submissions get the scores of the splits that count for them; one that is being scored loses its row.
        """
        runs = {(entry, name): run for entry, row in self.runs().items() for name, run in row.items()}
        seconds = {key: run.planning_s for key, run in runs.items() if run.planning_s is not None}
        reasons = {key: run.reason for key, run in runs.items() if run.reason}
        found = replace(standings, planning_s=seconds, reasons=reasons)
        if self.given:
            return found
        counted = read_counted(self.folder)
        found = with_counted(found, counted) if counted else found
        return replace(found, splits=self._splits(found))

    def _splits(self, standings: Standings) -> dict[str, Splits]:
        paths = self.problem_paths()
        validation = frozenset(problem_name(path) for path in paths if self._split(path) == "validation")
        hidden = hidden_scores(self.folder)
        return {
            row.name: splits_of(row.results, validation, row.counted, hidden.get(row.name)) for row in standings.rows
        }

    def lock(self) -> AbstractContextManager[None]:
        """Hold the track: other processes wait before they read a file of it to change it."""
        return locked(self.folder / LOCK)

    def rank(self, *, draws: bool = True) -> Standings:
        """Rank the stored answers and write `standings.json`, while nobody else changes them; see `standings`."""
        with self.lock():
            found = self.standings(draws=draws)
            self.write_standings(found)
        return found

    def write_standings(self, standings: Standings) -> Path:
        """Write `standings.json`; returns its path."""
        path = self.folder / STANDINGS
        write_sealed(path, row_text(standings.file()))
        return path

    def has_entries(self) -> bool:
        """True where any entry has a file of answers."""
        return any((self.folder / "solutions").glob(f"*{SUFFIX}"))

    def has_entry(self, entry: str) -> bool:
        """True where an entry has a file of answers, which may be empty."""
        return self._answers(entry).is_file()

    def has_answer(self, entry: str, problem: str) -> bool:
        """True where an entry's answer to a problem is stored."""
        return problem in read_rows(self._answers(entry))

    def runs(self) -> dict[str, dict[str, RunRecord]]:
        """The run records by entry and problem."""
        return read_runs(self.folder / RUNS)

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
    """The name of a problem or entry, from the name of its file."""
    return path.name.removesuffix(SUFFIX).removesuffix(".json")


def _read_problem(path: Path) -> Problem:
    status = path.stat()
    problem = _loaded(path, status.st_mtime_ns, status.st_ino, status.st_size)
    if problem.name != problem_name(path):
        raise ContentError(f"the problem is called {problem.name!r}, not like its file", where=f"{path}: name")
    return problem


@lru_cache(maxsize=512)
def _loaded(path: Path, _changed_ns: int, _number: int, _size_bytes: int) -> Problem:
    """The problem in a file, read again only when the file has changed."""
    return load_problem(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _References:
    references: Mapping[str, ReferenceCosts]


def load_track(leaderboards: Path, name: str) -> Track:
    """Load the track `name`, or its older version TRACK@VERSION. Raises `UnknownNameError` or `ContentError`."""
    current, _, version = name.partition(AT)
    names = track_names(leaderboards)
    if version and current in names:
        names = tuple(f"{current}{AT}{one}" for one in older_versions(leaderboards / current))
    if name not in names:
        raise unknown_name("track", name, names)
    folder = leaderboards / current
    path = (folder / VERSIONS / version if version else folder) / "track.yaml"
    rules = load(path, Rules, schema=SCHEMA)
    if rules.budget_s is not None and not 0 < rules.budget_s <= SECONDS_AT_MOST:
        raise ContentError(
            f"budget_s: must be positive and at most {SECONDS_AT_MOST:,}, not {rules.budget_s}", where=str(path)
        )
    return Track(folder=path.parent, rules=rules)


def track_names(leaderboards: Path) -> tuple[str, ...]:
    """List the tracks: all folders with a `track.yaml`."""
    return tuple(sorted(path.parent.name for path in leaderboards.glob("*/track.yaml")))


def older_versions(folder: Path) -> tuple[str, ...]:
    """List the older versions in the folder of a track."""
    return tuple(sorted(path.parent.name for path in (folder / VERSIONS).glob("*/track.yaml")))


def freeze_track(
    track: Track,
    *,
    again: Container[str] = (),
    progress: Callable[[MapProgress], None] = lambda _: None,
    place: TaskMap | None = None,
) -> dict[str, ReferenceCosts]:
    """Give every problem without a reference its lower bound and the best stored cost; returns the new references.

    After that a new entry no longer changes the scores of others. References of hidden instances are written to
    `references.json`. Problems without a valid answer are skipped. Where `again` names a problem (for a new version of
    the track), a better stored answer replaces its reference. The standings are ranked and written again. The bounds
    of each problem are a task of `place` (default: one after another, here).
    """
    with track.lock():
        return _frozen(track, again, progress, place or InTurn())


def _frozen(
    track: Track, again: Container[str], progress: Callable[[MapProgress], None], place: TaskMap
) -> dict[str, ReferenceCosts]:
    standings = track.standings()
    asked = []
    for problem in track.problems():
        results = [result for row in standings.rows for result in row.results if result.problem == problem.name]
        best = min((result.cost for result in results if result.cost is not None), default=None)
        known = problem.reference
        if best is not None and (known is None or (problem.name in again and best < known.best_known_ns)):
            asked.append((problem, results[0].bound, best))
    found = place.in_order(_reference, asked, shared=None, progress=progress)
    frozen = {problem.name: reference for (problem, _, _), reference in zip(asked, found, strict=True)}
    if not track.given:
        for problem, _, _ in asked:
            save_problem(replace(problem, reference=frozen[problem.name]), track.path_of(problem.name))
    if track.given and frozen:
        given = tuple(
            replace(problem, reference=frozen.get(problem.name) or problem.reference) for problem in track.given
        )
        kept = {problem.id: problem.reference for problem in given if problem.reference}
        write_sealed(track.folder / REFERENCES, row_text({"schema": SCHEMA, "references": kept}))
        track = replace(track, given=given)
    track.write_standings(track.standings() if frozen else standings)
    return frozen


def _reference(_shared: None, asked: tuple[Problem, int, int]) -> ReferenceCosts:
    """The reference of a problem with a known bound and the best stored cost."""
    problem, bound, best = asked
    return ReferenceCosts(
        bound_ns=bound,
        best_known_ns=best,
        source="stored solutions",
        bounds=bounds(problem),
        guarantee_ns=guarantee_ns(problem),
    )


def read_references(path: Path) -> dict[str, ReferenceCosts]:
    """The references of hidden instances by problem id; empty without a file. Raises `ContentError`."""
    if not path.is_file():
        return {}
    found = dict(load(path, _References, schema=SCHEMA, sealed=True).references)
    refuse([f"references.{name}.{text}" for name, one in found.items() for text in reference_findings(one)], str(path))
    return found
