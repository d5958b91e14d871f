"""Run entries on the problems of a track in parallel jobs, and store each answer at once.

An interrupted run continues where it stopped. Answers and standings do not depend on the number of jobs, on the order
in which runs finish, or on the machines that ran them.
"""

import atexit
import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Protocol

from opmark.core.errors import MissingExtraError, SubmissionError
from opmark.core.parallel.task_map import InThreads, TaskMap
from opmark.leaderboards.problem.placement import Solution, solution_of
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.scoring.attempt import Attempt
from opmark.leaderboards.scoring.placer_process import PlacerProcess
from opmark.leaderboards.scoring.run_record import FILE, RunRecord, code_of_placer, write_runs
from opmark.leaderboards.scoring.standings import Standings
from opmark.leaderboards.scoring.track import Track

# All records are in one file. Writing it after every run would take time from the placers.
WRITTEN_EVERY_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringProgress:
    """The progress of scoring, in runs. `left_s` is estimated from the runs so far, None before the first one ends."""

    done: int
    total: int
    kept: int
    left_s: float | None = None


class Runner(Protocol):
    """The interface of a runner, which tries one problem at a time for one job."""

    def attempt(self, problem: Problem, name: str, *, budget_s: float, seed: int = 0) -> Attempt:
        """Run the entry `name` on `problem`. Raises `SubmissionError` where it gives no valid answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    name: str
    problem: Problem
    record: RunRecord
    until: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    solution: Solution
    planning_s: float
    answered_s: float | None


@dataclass(frozen=True, slots=True)
class _NotRun:
    """An entry that lacks a package or time: no answer, and no failure of the algorithm either."""

    reason: str


def score_track(
    track: Track,
    names: Sequence[str],
    *,
    budget_s: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    again: bool = False,
    progress: Callable[[ScoringProgress], None] | None = None,
    cluster: TaskMap | None = None,
    compiled: bool = True,
    until: float = math.inf,
) -> Standings:
    """Run OpMark's own placers on every problem of a track, store their answers, and rank all stored answers.

    An answer replaces the stored one of its entry; a failed run removes it. A finished run with the same code, problem,
    budget and seed is not repeated unless `again`. A placer that lacks a package is not run: it gets no record, its
    stored answers stay, and `not_run` names it. `budget_s` defaults to the track's. With `cluster` its workers run the
    placers instead of `jobs` processes here. Without `compiled` these run in plain Python. A placer whose turn comes
    after `until`, a time of `time.monotonic`, is not run either.
    """
    codes = {name: code_of_placer(name) for name in names}
    show = progress or (lambda _: None)
    with ExitStack() as stack:
        if cluster is None:
            processes = [stack.enter_context(PlacerProcess(compiled=compiled)) for _ in range(jobs)]
            not_run = score_entries(
                track, codes, processes, budget_s=budget_s, seed=seed, again=again, progress=show, until=until
            )
        else:
            tasks, kept = _tasks(track, codes, budget_s=budget_s, seed=seed, again=again, layers=())
            results = cluster.run(_run_on_worker, tasks, shared=None)
            not_run = _score(track, tasks, kept=kept, place=cluster, results=results, progress=show)
    # In plain Python all the draws of a problem take longer than most placers.
    return replace(track.rank(draws=compiled), not_run=not_run)


def score_entries(
    track: Track,
    codes: Mapping[str, str],
    runners: Sequence[Runner],
    *,
    budget_s: float | None = None,
    seed: int = 0,
    again: bool = False,
    layers: tuple[str, ...] = (),
    progress: Callable[[ScoringProgress], None] = lambda _: None,
    until: float = math.inf,
) -> dict[str, str]:
    """Run entries with one job per runner, and store each answer at once; `codes` maps entries to code hashes.

    Returns the entries that were not run, for want of a package or because `until` was over, with the reason.
    """
    tasks, kept = _tasks(track, codes, budget_s=budget_s, seed=seed, again=again, layers=layers, until=until)
    free: queue.SimpleQueue[Runner] = queue.SimpleQueue()
    for runner in runners:
        free.put(runner)
    place = InThreads(len(runners))
    results = place.run(_run_free, tasks, shared=free)
    return _score(track, tasks, kept=kept, place=place, results=results, progress=progress)


def _score(
    track: Track,
    tasks: Sequence[_Task],
    *,
    kept: int,
    place: TaskMap,
    results: Generator[tuple[int, _Answer | _NotRun | str], None, None],
    progress: Callable[[ScoringProgress], None],
) -> dict[str, str]:
    """Store here each result of the tasks at `place`, as it comes; returns the entries that lack a package."""
    progress(ScoringProgress(done=0, total=len(tasks), kept=kept))
    spent_s = 0.0
    not_run: dict[str, str] = {}
    records = _Records(track)
    try:
        with closing(results):
            for done, (number, found) in enumerate(results, 1):
                if isinstance(found, _NotRun):
                    not_run[tasks[number].name] = found.reason
                else:
                    spent_s += _keep(track, records, tasks[number], found)
                left_s = spent_s / done * (len(tasks) - done) / place.slots
                progress(ScoringProgress(done=done, total=len(tasks), kept=kept, left_s=left_s))
    finally:
        records.write()
    return dict(sorted(not_run.items()))


def _run_free(free: "queue.SimpleQueue[Runner]", task: _Task) -> _Answer | _NotRun | str:
    """Run a task with a runner that is free."""
    runner = free.get()
    try:
        return _run(runner, task)
    finally:
        free.put(runner)


# A thread of a worker of a cluster keeps its process: starting one and compiling takes longer than most runs.
_OF_THREAD = threading.local()


def _run_on_worker(_shared: None, task: _Task) -> _Answer | _NotRun | str:
    """Run a task with the process that belongs to this thread."""
    runner: PlacerProcess | None = getattr(_OF_THREAD, "runner", None)
    if runner is None:
        runner = _OF_THREAD.runner = PlacerProcess()
        atexit.register(runner.end)
    return _run(runner, task)


def _run(runner: Runner, task: _Task) -> _Answer | _NotRun | str:
    """The answer, or the reason why there is none."""
    record = task.record
    if time.monotonic() > task.until:
        return _NotRun("its turn came when the time was over")
    try:
        found = runner.attempt(task.problem, task.name, budget_s=record.budget_s, seed=record.seed)
    except MissingExtraError as error:
        return _NotRun(f"{error.message}: {error.hint}" if error.hint else error.message)
    except SubmissionError as error:
        return error.message
    answer = replace(found.solution, problem=task.problem.name, placer=task.name)
    if found.evaluation.decided is None and not found.evaluation.front:
        answer = solution_of(task.problem, found.evaluation.placement, placer=task.name)
    return _Answer(solution=answer, planning_s=found.planning_s, answered_s=found.answered_s)


class _Records:
    """New run records, added to the track's file every few seconds: a run whose record is lost is repeated."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._new: dict[str, dict[str, RunRecord]] = {}
        self._written_s = time.monotonic()

    def add(self, task: _Task, record: RunRecord) -> None:
        """Add one record."""
        self._new.setdefault(task.name, {})[task.problem.name] = record
        if time.monotonic() - self._written_s >= WRITTEN_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write the new records beside those that other processes have written meanwhile."""
        if self._new:
            with self._track.lock():
                runs = self._track.runs()
                for entry, row in self._new.items():
                    runs.setdefault(entry, {}).update(row)
                write_runs(self._track.folder / FILE, runs)
            self._new.clear()
        self._written_s = time.monotonic()


def _tasks(
    track: Track,
    codes: Mapping[str, str],
    *,
    budget_s: float | None,
    seed: int,
    again: bool,
    layers: tuple[str, ...],
    until: float = math.inf,
) -> tuple[list[_Task], int]:
    """The runs that are still to do, problem by problem, and the number of finished ones."""
    known = track.runs()
    tasks, kept = [], 0
    for problem in track.problems():
        budget = track.rules.budget_for(problem) if budget_s is None else budget_s
        for name, code in codes.items():
            wanted = RunRecord(problem=problem.id, code=code, budget_s=budget, seed=seed, layers=layers)
            before = known.get(name, {}).get(problem.name)
            ran = before is not None and before.asks_the_same(wanted)
            if ran and before is not None and (before.reason or track.has_answer(name, problem.name)) and not again:
                kept += 1
            else:
                tasks.append(_Task(name=name, problem=problem, record=wanted, until=until))
    return tasks, kept


def _keep(track: Track, records: _Records, task: _Task, found: _Answer | str) -> float:
    """Store the answer or its absence, then the record of the run; returns its seconds."""
    if isinstance(found, str):
        track.store(task.name, task.problem.name, None)
        records.add(task, replace(task.record, reason=found))
        return task.record.budget_s
    track.store(task.name, task.problem.name, found.solution)
    answered_s = None if found.answered_s is None else round(found.answered_s, 6)
    record = replace(task.record, planning_s=round(found.planning_s, 6), answered_s=answered_s)
    records.add(task, record)
    return found.planning_s
