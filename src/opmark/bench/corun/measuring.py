"""Measure kernels beside stressors and beside other kernels, into a journal that a later run continues."""

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opmark.bench.clock.machine import caches
from opmark.bench.clock.protocol import FULL
from opmark.bench.corun.stressors import NAMES
from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.progress import RunProgress, on_interrupt
from opmark.bench.worker.backend import BACKENDS, available_target
from opmark.bench.worker.neighbour import NeighbourWork
from opmark.bench.worker.pool import WorkerLostError, WorkerPool, WorkerProcess, refusal
from opmark.core.canonical import content_id
from opmark.core.errors import NothingSelectedError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.corun import CorunMeasurement, corun_measurements
from opmark.core.measurements.journal import read_records
from opmark.core.measurements.measurement import FAILED, OK, SKIPPED
from opmark.core.measurements.records import CorunTrial, CorunTurns, Done, Header, Overhead, Record
from opmark.models.resolve import graph_of

COMMAND = (sys.executable, "-m", "opmark.bench.corun.worker")
SUITE = "co-run"
MODELS = ("inception-small", "mobilenet-small", "bart-mini", "wide-and-deep", "resnet-small")
KERNELS, PAIRS = 80, 6
# Neighbours that share the preparation of one kernel.
_TOGETHER = 5
_PROTOCOL = replace(FULL, processes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorunReport:
    """The finished trials of the plan, and the journal that holds their turns."""

    journal: Path
    measurements: tuple[CorunMeasurement, ...]
    planned: int
    seconds: float

    @property
    def complete(self) -> bool:
        """True if nothing is left to measure."""
        return len(self.measurements) == self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """One kernel and some of its neighbours."""

    target: Target
    kernel: Kernel
    trials: tuple[CorunTrial, ...]


def measure_corun(
    target_names: Sequence[str],
    *,
    journal: Path,
    models: Sequence[str] = MODELS,
    kernels: int = KERNELS,
    pairs: int = PAIRS,
    seed: int = 0,
    budget_s: float | None = None,
    cache: Path | None = None,
    progress: Callable[[RunProgress], None] = lambda _: None,
    command: Sequence[str] = COMMAND,
) -> CorunReport:
    """Measure `kernels` kernels of the networks `models` per target: beside all stressors and `pairs` other kernels.

    Trials that the journal has are not measured again. Raises `UnavailableError` if a target cannot be measured here,
    `ContentError` if the journal belongs to another plan or machine, `MeasurementError` while another run writes to it.
    """
    targets = [available_target(name)[1] for name in target_names]
    groups = [
        group
        for target in targets
        for group in _planned(target, models, kernels=kernels, pairs=pairs, seed=seed, cache=cache)
    ]
    random.Random(seed).shuffle(groups)
    header = Header(suite=SUITE, suite_id=content_id([SUITE, list(models), kernels, pairs, seed]), quality=FULL.name)
    begun = time.monotonic()
    with JournalWriter(journal, header) as writer:
        writer.start_session(probe(BACKENDS.load(name) for name in sorted({t.backend for t in targets})), targets)
        run = _Run(writer, command)
        try:
            with on_interrupt(run.stop):
                run.measure_all(groups, begun=begun, budget_s=budget_s, progress=progress)
        finally:
            run.close()
    wanted = {trial.trial for group in groups for trial in group.trials}
    found = corun_measurements(read_records(journal)[0])
    return CorunReport(
        journal=journal,
        measurements=tuple(one for one in found if one.trial in wanted),
        planned=len(wanted),
        seconds=time.monotonic() - begun,
    )


class _Run:
    """The workers of one run and the journal they write to."""

    def __init__(self, writer: JournalWriter, command: Sequence[str]) -> None:
        self._writer = writer
        self._pool = WorkerPool(_PROTOCOL, caches(), self._started, command)
        self._stopped = False

    def stop(self) -> None:
        """End after the present kernel."""
        self._stopped = True

    def measure_all(
        self,
        groups: Sequence[_Group],
        *,
        begun: float,
        budget_s: float | None,
        progress: Callable[[RunProgress], None],
    ) -> None:
        """Measure everything that the journal lacks, until `budget_s` seconds after `begun`."""
        known = set(self._writer.found.done)
        left = [(group, [one for one in group.trials if one.trial not in known]) for group in groups]
        left = [(group, trials) for group, trials in left if trials]
        total = sum(len(group.trials) for group in groups)
        todo = sum(len(trials) for _, trials in left)
        done, first = 0, time.monotonic()
        for group, trials in left:
            seconds = time.monotonic() - begun
            left_s = (time.monotonic() - first) / done * (todo - done) if done else None
            if budget_s is not None and left_s is not None:
                left_s = min(left_s, budget_s - seconds)
            doing = f"{group.kernel.kind} on {group.target.name}"
            progress(RunProgress(done=total - todo + done, total=total, seconds=seconds, left_s=left_s, doing=doing))
            if self._stopped or (budget_s is not None and seconds > budget_s):
                return
            self._writer.append(list(self._records(group, trials)))
            done += len(trials)
        progress(RunProgress(done=total, total=total, seconds=time.monotonic() - begun, left_s=0.0, doing=""))

    def close(self) -> None:
        """Stop the workers."""
        self._pool.dismiss_all()

    def _records(self, group: _Group, trials: Sequence[CorunTrial]) -> list[Record]:
        """The records of one kernel beside some neighbours; written at once, so that a kill loses only these."""
        answer = self._ask(group, trials)
        refused = refusal(answer)
        if refused is not None:
            status, reason = refused
            return [record for one in trials for record in (one, Done(trial=one.trial, status=status, reason=reason))]
        records: list[Record] = []
        for trial, found in zip(trials, answer["found"], strict=True):
            records.append(trial)
            if "failed" in found:
                records.append(Done(trial=trial.trial, status=SKIPPED, reason=found["failed"]))
                continue
            fields: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
            }
            try:
                records += [CorunTurns(trial=trial.trial, **fields), Done(trial=trial.trial, status=OK)]
            except ValueError as error:
                records.append(Done(trial=trial.trial, status=FAILED, reason=f"impossible samples: {error}"))
        return records

    def _ask(self, group: _Group, trials: Sequence[CorunTrial]) -> dict[str, Any]:
        works = [
            NeighbourWork(stressor="" if one.beside else one.neighbour, kernel=one.beside).content() for one in trials
        ]
        try:
            worker = self._pool.worker(group.target, 0)
            return worker.ask({"do": "corun", "kernel": group.kernel.content(), "neighbours": works})
        except WorkerLostError as error:
            self._pool.dismiss(group.target, 0)
            return {"failed": error.message}

    def _started(self, target: Target, process: int, worker: WorkerProcess) -> None:
        self._writer.append([Overhead(target=target.name, process=process, ns=worker.overhead_ns)])


def _planned(
    target: Target, models: Sequence[str], *, kernels: int, pairs: int, seed: int, cache: Path | None
) -> list[_Group]:
    """The kernels of the networks in groups with their neighbours, every kind in turn."""
    by_kind: dict[str, dict[Kernel, None]] = {}
    for model in models:
        for node in graph_of(model, target.name, cache=cache).costly:
            by_kind.setdefault(node.kernel.kind, {})[node.kernel] = None
    drawn = random.Random(f"{seed}/{target.name}")
    chosen = _in_turn({kind: drawn.sample(list(own), len(own)) for kind, own in sorted(by_kind.items())})[:kernels]
    if len(chosen) < 2:
        raise NothingSelectedError("the networks have fewer than two kernels", hint="name others with --models")
    groups = []
    for kernel in chosen:
        others = drawn.sample([one for one in chosen if one != kernel], min(pairs, len(chosen) - 1))
        beside: list[tuple[str, Kernel | None]] = [(name, None) for name in NAMES]
        beside += [(other.key, other) for other in others]
        drawn.shuffle(beside)
        trials = [
            CorunTrial(
                trial=content_id([target.id, SUITE, kernel.key, name]),
                target=target.name,
                kernel=kernel,
                neighbour=name,
                beside=other,
            )
            for name, other in beside
        ]
        groups += [
            _Group(target=target, kernel=kernel, trials=tuple(trials[at : at + _TOGETHER]))
            for at in range(0, len(trials), _TOGETHER)
        ]
    return groups


def _in_turn(by_kind: Mapping[str, Sequence[Kernel]]) -> list[Kernel]:
    """The kernels, one of each kind after the other."""
    most = max(map(len, by_kind.values()), default=0)
    return [own[place] for place in range(most) for own in by_kind.values() if place < len(own)]
