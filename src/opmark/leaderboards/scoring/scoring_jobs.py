"""Run entries on the problems of a track in parallel jobs, and store each answer at once.

An interrupted run continues where it stopped. Answers and standings do not depend on the number of jobs or on the order
in which runs finish.
"""

import concurrent.futures
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from opmark.core.errors import SubmissionError
from opmark.leaderboards.problem.placement import solution_of
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


def score_track(
    track: Track,
    names: Sequence[str],
    *,
    budget_s: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    again: bool = False,
    progress: Callable[[ScoringProgress], None] | None = None,
) -> Standings:
    """Run OpMark's own placers on every problem of a track, store their answers, and rank all stored answers.

    An answer replaces the stored one of its entry; a failed run removes it. A finished run with the same code, problem,
    budget and seed is not repeated unless `again`. `budget_s` defaults to the track's.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(PlacerProcess()) for _ in range(jobs)]
        codes = {name: code_of_placer(name) for name in names}
        score_entries(
            track, codes, processes, budget_s=budget_s, seed=seed, again=again, progress=progress or (lambda _: None)
        )
    return track.rank()


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
) -> None:
    """Run entries with one job per runner, and store each answer at once; `codes` maps entries to code hashes."""
    tasks, kept = _tasks(track, codes, budget_s=budget_s, seed=seed, again=again, layers=layers)
    progress(ScoringProgress(done=0, total=len(tasks), kept=kept))
    free: queue.SimpleQueue[Runner] = queue.SimpleQueue()
    for runner in runners:
        free.put(runner)
    spent_s = 0.0

    def run(task: _Task) -> tuple[_Task, Attempt | str]:
        runner = free.get()
        try:
            budget = task.record.budget_s
            return task, runner.attempt(task.problem, task.name, budget_s=budget, seed=seed)
        except SubmissionError as error:
            return task, error.message
        finally:
            free.put(runner)

    records = _Records(track)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=len(runners))
    try:
        pending = [pool.submit(run, task) for task in tasks]
        for done, future in enumerate(concurrent.futures.as_completed(pending), 1):
            task, found = future.result()
            spent_s += _keep(track, records, task, found)
            left_s = spent_s / done * (len(tasks) - done) / len(runners)
            progress(ScoringProgress(done=done, total=len(tasks), kept=kept, left_s=left_s))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        records.write()


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
                tasks.append(_Task(name=name, problem=problem, record=wanted))
    return tasks, kept


def _keep(track: Track, records: _Records, task: _Task, found: Attempt | str) -> float:
    """Store the answer or its absence, then the record of the run; returns its seconds."""
    if isinstance(found, str):
        track.store(task.name, task.problem.name, None)
        records.add(task, replace(task.record, reason=found))
        return task.record.budget_s
    answer = solution_of(task.problem, found.evaluation.placement, placer=task.name)
    track.store(task.name, task.problem.name, answer)
    answered_s = None if found.answered_s is None else round(found.answered_s, 6)
    record = replace(task.record, planning_s=round(found.planning_s, 6), answered_s=answered_s)
    records.add(task, record)
    return found.planning_s
