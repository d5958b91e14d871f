"""Measure in rounds, each where predictions are least certain, until the error is small enough or time is up."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opmark.bench.run.progress import RunProgress, RunSummary
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import Plan, plan_once
from opmark.bench.suite.suite import Suite
from opmark.bench.worker.pool import COMMAND
from opmark.core.errors import NothingSelectedError
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import Journal, read_journal
from opmark.core.measurements.records import KernelTrial
from opmark.predictors.inputs.features import features, hardware_of
from opmark.studies.active_sampling.allocation import (
    Cell,
    CellState,
    by_cell,
    choose,
    first_look,
    importance,
    next_counts,
    per_cell,
    set_aside,
    target_errors,
)
from opmark.studies.active_sampling.curve import AccuracyCurve, AccuracyPoint, TargetAccuracy, read_curve, write_curve
from opmark.studies.active_sampling.judge import CellJudgement, Judge, target_metrics

REACHED = "the target error is reached"
OUT_OF_TIME = "the time is up"
EXHAUSTED = "every kernel to learn from is measured"
INTERRUPTED = "interrupted"
# Whole networks get this share of the budget if the suite has any, and the time that kernels leave.
_NETWORKS_SHARE = 0.2
# Rounds grow with the number of rows, so that training again stays a small part of the time.
_GROWTH = 0.4
_LEAST_ROUND = 48
_UNKNOWN_WIDTH = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSummary:
    """The result of a run in rounds: the summary of all trials, the accuracy curve, and the curve's folder."""

    run: RunSummary
    curve: AccuracyCurve
    folder: Path

    @property
    def finished(self) -> bool:
        """True if no further round is needed: the error is reached, or everything is measured."""
        return self.curve.stopped in {REACHED, EXHAUSTED}


def curve_folder(journal: Path) -> Path:
    """The folder of a run's curve: beside the journal, with the same name."""
    return journal.with_suffix("")


def run_actively(
    suite: Suite,
    *,
    journal: Path,
    target_error: float,
    budget_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    estimator: str = "lightgbm",
    progress: Callable[[RunProgress], None] = lambda _: None,
    announce: Callable[[str], None] = lambda _: None,
    cache: Path | None = None,
    command: Sequence[str] = COMMAND,
) -> ActiveSummary:
    """Measure `suite` until every target's error falls to `target_error`, a fraction.

    The first round measures the kernels that judge and a few of every kind. Further rounds measure the kernels that
    `allocation` chooses, and whole networks come last. All measurements are in the journal, so that the same call
    continues a stopped run; `curve.json` and `curve.html` beside it grow by one point per round. Raises
    `NothingSelectedError` if the suite has no kernels, and the errors of `run`.
    """
    whole = replace(suite, only=())
    planned = plan_once(whole, shard, cache)
    if not planned.kernels:
        raise NothingSelectedError("has no kernels to learn from", where=suite.where)
    rounds = _Rounds(
        whole,
        planned=planned,
        journal=journal,
        target_error=target_error,
        budget_s=budget_s or suite.budget_s,
        judge=Judge(estimator=estimator),
        announce=announce,
        measure=lambda chosen, left_s: run(
            chosen,
            journal=journal,
            budget_s=left_s,
            shard=shard,
            progress=progress,
            cache=cache,
            command=command,
            refine=False,
        ),
    )
    return rounds.go()


class _Rounds:
    """The state of one run in rounds; it can be rebuilt from the journal."""

    def __init__(
        self,
        suite: Suite,
        *,
        planned: Plan,
        journal: Path,
        target_error: float,
        budget_s: float | None,
        judge: Judge,
        announce: Callable[[str], None],
        measure: Callable[[Suite, float | None], RunSummary],
    ) -> None:
        self._suite = suite
        self._plan = planned
        self._path = journal
        self._judge = judge
        self._announce = announce
        self._measure_suite = measure
        self._cells = by_cell(planned.kernels)
        self._weights = importance(self._cells, planned.shares)
        # Some sampled kernels are set aside, as are all kernels of the networks that only judge.
        self._judging = planned.judging | {
            key
            for trials in self._cells.values()
            for key in set_aside([trial for trial in trials if trial.trial not in planned.judging])
        }
        self._start = time.monotonic()
        self._budget_s = budget_s
        self._folder = curve_folder(journal)
        earlier = read_curve(self._folder) if journal.exists() else None
        points = earlier.points if earlier is not None else ()
        self._curve = AccuracyCurve(suite=suite.name, target_error=target_error, points=points)
        self._earlier_s = points[-1].seconds if points else 0.0
        self._done: frozenset[str] = frozenset()
        self._last: RunSummary | None = None
        self._waited_s = 0.0

    def go(self) -> ActiveSummary:
        """Run all rounds, then measure the networks."""
        each = per_cell(self._budget_s, len(self._cells))
        chosen = first_look(self._cells, self._judging, each)
        stopped = ""
        while not stopped:
            stopped = self._measure(chosen, self._left_s(networks=False))
            if stopped == INTERRUPTED:
                break
            found = self._learn()
            if not stopped:
                stopped, chosen = self._next(found)
        rest = [trial.trial for trial in self._plan.kernels if trial.trial not in self._done]
        if rest and stopped == EXHAUSTED and self._measure(rest, self._left_s(networks=False)) == INTERRUPTED:
            stopped = INTERRUPTED
        networks = [trial.trial for trial in self._plan.networks]
        if networks and stopped != INTERRUPTED:
            self._announce("Measuring whole networks …")
            if self._measure(networks, self._left_s(networks=True)) == INTERRUPTED:
                stopped = INTERRUPTED
        self._curve = replace(self._curve, stopped=stopped)
        write_curve(self._curve, self._folder)
        assert self._last is not None
        return ActiveSummary(run=self._whole(self._last), curve=self._curve, folder=self._folder)

    def _left_s(self, *, networks: bool) -> float | None:
        """Seconds left, except those reserved for networks; None without a budget."""
        if self._budget_s is None:
            return None
        kept = 0.0 if networks or not self._plan.networks else _NETWORKS_SHARE * self._budget_s
        return self._budget_s - kept - (time.monotonic() - self._start)

    def _measure(self, chosen: Sequence[str], left_s: float | None) -> str:
        """Measure `chosen`; return the reason why no further round can follow, or an empty text."""
        if left_s is not None and left_s <= 0:
            # The first call must write a journal even if planning took all the time.
            if self._last is not None:
                return OUT_OF_TIME
            left_s = 1.0
        self._last = self._measure_suite(replace(self._suite, only=tuple(chosen)), left_s)
        self._waited_s += self._last.waited_seconds
        if self._last.interrupted:
            return INTERRUPTED
        return "" if self._last.complete else OUT_OF_TIME

    def _learn(self) -> dict[Cell, CellJudgement]:
        """Train on all measurements, and add a point to the curve if there are new ones."""
        journal = read_journal(self._path)
        self._judge.hardware = hardware_of(journal.environment.checked)
        self._done = journal.measured
        judging = {(trial.target, trial.kernel.key) for trial in self._plan.kernels if trial.trial in self._judging}
        found = self._judge.judge(journal.measurements, judging)
        kernels = sum(1 for trial in self._plan.kernels if trial.trial in self._done)
        points = self._curve.points
        if found and (not points or points[-1].kernels < kernels):
            point = self._point(found, kernels)
            self._curve = replace(self._curve, points=(*points, point))
            write_curve(self._curve, self._folder)
            self._announce(_sentence(point))
        return found

    def _point(self, found: Mapping[Cell, CellJudgement], kernels: int) -> AccuracyPoint:
        errors = target_errors(self._states(found), self._weights)
        return AccuracyPoint(
            seconds=round(self._earlier_s + time.monotonic() - self._start, 1),
            kernels=kernels,
            targets={
                target: TargetAccuracy(
                    median=values["median"],
                    p90=values["p90"],
                    acc10=values["acc10"],
                    n=int(values["n"]),
                    held_out=errors[target],
                )
                for target, values in target_metrics(found).items()
            },
        )

    def _next(self, found: Mapping[Cell, CellJudgement]) -> tuple[str, list[str]]:
        """The reason to stop, and the trials of the next round."""
        states = self._states(found)
        errors = target_errors(states, self._weights)
        if errors and max(errors.values()) <= self._curve.target_error:
            return REACHED, []
        count = max(_LEAST_ROUND, int(_GROWTH * len(self._done)))
        counts = next_counts(states, self._weights, count)
        chosen = [key for cell, wanted in counts.items() if wanted for key in self._chosen(cell, found, wanted)]
        return ("", chosen) if chosen else (EXHAUSTED, [])

    def _states(self, found: Mapping[Cell, CellJudgement]) -> list[CellState]:
        """The state of every cell; a cell without usable rows has a wide interval."""
        states = []
        for cell in self._cells:
            left = len(self._open(cell))
            one = found.get(cell)
            if one is not None:
                rows, error, width = len(one.known), one.error, one.errors.half_width
                states.append(CellState(cell=cell, rows=rows, error=error, half_width=width, left=left))
            elif left:
                states.append(CellState(cell=cell, rows=0, error=_UNKNOWN_WIDTH, half_width=_UNKNOWN_WIDTH, left=left))
        return states

    def _open(self, cell: Cell) -> list[KernelTrial]:
        return [
            trial for trial in self._cells[cell] if trial.trial not in self._done and trial.trial not in self._judging
        ]

    def _chosen(self, cell: Cell, found: Mapping[Cell, CellJudgement], count: int) -> list[str]:
        trials = self._open(cell)
        one = found.get(cell)
        if one is None or count >= len(trials):
            return [trial.trial for trial in trials[:count]]
        candidates = features([trial.kernel for trial in trials], hardware=self._judge.hardware)
        return [trials[index].trial for index in choose(candidates, one.known, one.widths(candidates), count)]

    def _whole(self, last: RunSummary) -> RunSummary:
        """The summary of the whole plan instead of the last round."""
        journal = read_journal(self._path)
        summary = _summary_of(self._plan, journal, last)
        return replace(summary, seconds=time.monotonic() - self._start, waited_seconds=self._waited_s)


def _summary_of(planned: Plan, journal: Journal, last: RunSummary) -> RunSummary:
    """The summary `last` with the counts and the standard error of all trials of the plan."""
    labels = {trial.trial: journal.labels[trial.trial] for trial in planned.trials if trial.trial in journal.labels}
    statuses = Counter(found.status for found in labels.values())
    statuses.update(
        journal.done[trial.trial].status
        for trial in planned.trials
        if trial.trial in journal.measured and trial.trial not in labels
    )
    return replace(
        last,
        planned=len(planned.trials),
        done=statuses.total(),
        statuses=dict(sorted(statuses.items())),
        kernels=sum(1 for trial in planned.kernels if trial.trial in labels),
        networks=sum(1 for trial in planned.networks if trial.trial in labels),
        median_standard_error=median([found.main.standard_error for found in labels.values()]) if labels else None,
    )


def _sentence(point: AccuracyPoint) -> str:
    parts = ", ".join(
        f"{target} {one.median:.1%} median, {one.p90:.1%} p90 (held out {one.held_out:.1%})"
        for target, one in sorted(point.targets.items())
    )
    return f"{point.kernels:,} kernels after {point.seconds:.0f} s: {parts}"
