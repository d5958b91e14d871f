"""A measuring run: chunks of trials in shuffled rounds over several processes, written down block by block."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opmark.bench.clock.machine import caches, probe
from opmark.bench.clock.protocol import protocol_named
from opmark.bench.run.drift import Drift
from opmark.bench.run.interrupt import on_interrupt
from opmark.bench.run.journal_writer import JournalWriter, same_machine
from opmark.bench.run.repeats import again_plan
from opmark.bench.run.verdict import Progressing, begin, judge
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import Suite
from opmark.bench.worker.backend import BACKENDS, rules_on
from opmark.bench.worker.footprint import allocated_bytes
from opmark.bench.worker.pool import Crew
from opmark.bench.worker.process import COMMAND, WorkerLostError, WorkerProcess
from opmark.core.canonical import plain
from opmark.core.estimate import median
from opmark.core.journal import at_clock, read_journal
from opmark.core.measurement import FAILED, SKIPPED
from opmark.core.records import Block, Done, Header, KernelTrial, NetworkTrial, Overhead, Record, Session
from opmark.core.target import Target

Trial = KernelTrial | NetworkTrial
_NETWORKS_PER_CHUNK = 4
# Processes above this number are needed seldom, and would hold memory all the time.
_LASTING_PROCESSES = 2
# How long to wait for a calm machine: at a time, of a whole run, and between two looks.
_MOST_PATIENCE_S = 60.0
_PATIENT_SHARE = 0.5
_CALM_PAUSE_S = 0.3
# A chunk ends when so small a part of a full one is left: a quarter.
_STAYING_SHARE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is; `left_s` is None until it can be guessed."""

    done: int
    total: int
    seconds: float
    left_s: float | None
    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run came to. `statuses` counts every finished trial of the plan, earlier runs included."""

    journal: Path
    suite: str
    planned: int
    done: int
    statuses: Mapping[str, int]
    seconds: float
    interrupted: bool

    @property
    def complete(self) -> bool:
        """Whether nothing is left to measure."""
        return self.done == self.planned


def run(
    suite: Suite,
    *,
    journal: Path,
    budget_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[Progress], None] = lambda _: None,
    cache: Path | None = None,
    command: Sequence[str] = COMMAND,
    again: str = "",
) -> RunSummary:
    """Measure `suite` into `journal`, going on where an earlier run stopped; `budget_s` wins over the suite's own.

    With `again`, a status, only what the journal holds as that is measured, once more. The first Ctrl-C lets the block
    in progress finish. Raises `MeasurementError` while another run writes to the journal, `ContentError` where the
    journal is of another suite or machine, `NothingSelectedError` where nothing is of the status `again`.
    """
    header = Header(suite=suite.name, suite_id=suite.id, quality=suite.quality)
    # Planned before the journal is made: what cannot be planned leaves nothing behind.
    trials = plan(suite, shard=shard, cache=cache)
    if again:
        trials = again_plan(trials, read_journal(journal), again)
    with JournalWriter(journal, header) as writer:
        return _Run(
            trials,
            writer=writer,
            path=journal,
            budget_s=budget_s or suite.budget_s,
            progress=progress,
            command=command,
        ).go()


class _Run:
    """The state of one run."""

    def __init__(
        self,
        trials: Plan,
        *,
        writer: JournalWriter,
        path: Path,
        budget_s: float | None,
        progress: Callable[[Progress], None],
        command: Sequence[str],
    ) -> None:
        self._plan = trials
        self._path = path
        self._protocol = rules_on(trials.targets, protocol_named(trials.suite.quality))
        self._writer = writer
        self._progress = progress
        self._start = time.monotonic()
        self._deadline = self._start + budget_s if budget_s else None
        self._crew = Crew(self._protocol, caches(), self._worker_started, command)
        self._targets = {target.name: target for target in trials.targets}
        found = writer.found
        self._known = set(found.trials)
        # Blocks of what is done are most of a journal, and nobody needs them any more.
        self._earlier = {trial: blocks for trial, blocks in found.blocks.items() if trial not in found.done}
        writer.found = replace(found, blocks=self._earlier)
        self._done = dict(found.done)
        # Counted once and then kept: progress is reported with every block, and plans are long.
        self._planned = {trial.trial for trial in trials.trials}
        self._done_count = self._done_before = len(self._planned & self._done.keys())
        self._round = found.rounds
        self._drifted = set(found.drifted_rounds)
        self._drift = Drift(found.sentinels, self._protocol.sentinel_drift)
        self._overheads: dict[str, list[float]] = defaultdict(list)
        for overhead in found.overheads:
            self._overheads[overhead.target].append(overhead.ns)
        # Trials begun and not yet judged, by target.
        self._open: dict[str, dict[str, Progressing]] = defaultdict(dict)
        self._waited_s = 0.0
        self._stopped = False
        self._chance = random.Random()

    def go(self) -> RunSummary:
        """Measure until everything is done, time is up, or someone stops it."""
        self._begin_session()
        with on_interrupt(self._stop):
            try:
                for number, (chunk, is_last) in enumerate(self._chunks(), start=1):
                    self._measure(chunk, is_last=is_last)
                    if number % self._protocol.restart_chunks == 0:
                        self._crew.dismiss_all()
                if not self._stopped:
                    # Out of time: what is nearly finished gets its verdict. Interrupted: it goes on later.
                    for name, states in self._open.items():
                        self._judge(self._targets[name], states, final=True)
            finally:
                self._crew.dismiss_all()
        counted = Counter(self._done[trial.trial].status for trial in self._plan.trials if trial.trial in self._done)
        return RunSummary(
            journal=self._path,
            suite=self._plan.suite.name,
            planned=len(self._plan.trials),
            done=self._done_count,
            statuses=dict(sorted(counted.items())),
            seconds=time.monotonic() - self._start,
            interrupted=self._stopped,
        )

    def _begin_session(self) -> None:
        names = sorted({target.backend for target in self._plan.targets})
        environment = probe(BACKENDS.load(name) for name in names)
        same_machine(self._writer.found, environment)
        self._append(Session(environment=environment, targets=self._plan.targets))

    def _chunks(self) -> Iterator[tuple[list[Trial], bool]]:
        """What is left, a few trials of one target at a time, all targets in step; fewer as time runs out.

        The second item says whether nothing of that target comes after, or must not overlap with what does.
        """
        left: dict[tuple[str, bool], list[Trial]] = defaultdict(list)
        for trial in self._plan.trials:
            if trial.trial not in self._done:
                left[trial.target, isinstance(trial, KernelTrial)].append(trial)
        sizes = {key: len(trials) for key, trials in left.items()}
        while left:
            # Networks before kernels, then the target that is furthest behind.
            key = min(left, key=lambda key: (key[1], -len(left[key]) / sizes[key]))
            queue = left[key]
            most = self._protocol.chunk_trials if key[1] else _NETWORKS_PER_CHUNK
            most = min(most, self._affordable())
            if self._is_over() or most < 1:
                return
            chunk: list[Trial] = []
            footprint = 0
            while queue and len(chunk) < most and (not chunk or footprint < self._protocol.chunk_bytes):
                trial = queue.pop(0)
                chunk.append(trial)
                if isinstance(trial, KernelTrial):
                    footprint += 4 * allocated_bytes(trial.kernel, self._language(trial.target))
            if not queue:
                del left[key]
            yield chunk, not queue or not key[1]

    def _language(self, target_name: str) -> str:
        return BACKENDS.load(self._targets[target_name].backend).language

    def _affordable(self) -> int:
        """How many trials fit in the time left, as far as one can tell."""
        finished = self._done_count - self._done_before
        if self._deadline is None or not finished:
            return self._protocol.chunk_trials
        now = time.monotonic()
        return int((self._deadline - now) / ((now - self._start) / finished))

    def _measure(self, chunk: Sequence[Trial], *, is_last: bool) -> None:
        """Rounds over the trials of one chunk until nearly all have their verdicts or time is up.

        The few that need longer stay open and join the next chunk: rounds of few trials are mostly sentinels.
        """
        target = self._targets[chunk[0].target]
        states = self._open[target.name]
        begun = [begin(trial, self._earlier.get(trial.trial, ()), self._protocol) for trial in chunk]
        states.update({state.trial.trial: state for state in begun})
        present = list(states)
        self._append(*(trial for trial in chunk if trial.trial not in self._known))
        self._known.update(states)
        few = 0 if is_last else self._protocol.chunk_trials // _STAYING_SHARE
        turn = 0
        while len(states) > few and not self._is_over():
            owing = sorted({process for state in states.values() for process in state.processes_owing})
            if owing:
                self._attempt(target, owing[turn % len(owing)], states)
                turn += 1
            self._judge(target, states, final=False)
        needed = {process for state in states.values() for process in state.wanted}
        finished = [trial for trial in present if trial not in states]
        for process, worker in self._crew.alive(target):
            if process > _LASTING_PROCESSES and process not in needed:
                self._crew.dismiss(target, process)
            else:
                self._ask(target, process, worker, {"do": "close", "trials": finished})

    def _judge(self, target: Target, states: dict[str, Progressing], *, final: bool) -> None:
        overheads = self._overheads[target.name]
        for key, state in list(states.items()):
            if key in self._done:
                del states[key]
            elif final or not state.processes_owing:
                verdict = judge(
                    state,
                    self._protocol,
                    overhead_ns=median(overheads) if overheads else 0.0,
                    drifted=self._drifted,
                    final=final,
                )
                if verdict is not None:
                    self._finish(verdict)
                    del states[key]

    def _attempt(self, target: Target, process: int, states: Mapping[str, Progressing]) -> None:
        """One round in one process, again where the sentinels say that the machine was not itself."""
        for retries_left in range(self._protocol.retries, -1, -1):
            number = self._round
            self._round += 1
            before, hopeless = self._await_calm(target, process)
            taken = self._one_round(target, process, states, number)
            if self._is_over() and not taken:
                return
            after = self._read_sentinels(target, process)
            is_last = retries_left == 0 or hopeless
            found = self._drift.judge(number, target.name, before, after, is_last=is_last)
            self._append(found)
            if found.accepted:
                if found.drift:
                    self._drifted.add(number)
                for key, block in taken:
                    states[key].blocks.append(at_clock(block, found.clock_ratio))
                return

    def _one_round(
        self, target: Target, process: int, states: Mapping[str, Progressing], number: int
    ) -> list[tuple[str, Block]]:
        """One block of every trial that owes one, in random order."""
        taken = []
        keys = [key for key, state in states.items() if state.owed(process) and key not in self._done]
        self._chance.shuffle(keys)
        for key in keys:
            for which in states[key].owed(process):
                if self._is_over() or key in self._done:
                    break
                start = time.monotonic()
                block = self._block(target, process, states[key].trial, which, number)
                states[key].spent_s += time.monotonic() - start
                if block is not None:
                    taken.append((key, block))
        return taken

    def _block(self, target: Target, process: int, trial: Trial, which: str, number: int) -> Block | None:
        worker = self._crew.worker(target, process)
        request: dict[str, Any] = {"trial": trial.trial, "label": which}
        if isinstance(trial, KernelTrial):
            kernel = {"kind": trial.kernel.kind, "parameters": plain(trial.kernel.params)}
            request |= {"do": "kernel", "kernel": kernel}
        else:
            spec = self._plan.models[trial.trial]
            request |= {"do": "network", "model": spec.model, "dimensions": dict(spec.dimensions)}
        self._report(str(trial.kernel.kind if isinstance(trial, KernelTrial) else trial.network))
        try:
            answer = worker.ask(request)
        except WorkerLostError as error:
            self._crew.dismiss(target, process)
            answer = {"failed": error.message}
        for key, status in (("skipped", SKIPPED), ("failed", FAILED)):
            if key in answer:
                self._finish(Done(trial=trial.trial, status=status, reason=answer[key]))
                return None
        fields = {**answer, "ns": tuple(answer["ns"]), "base_ns": tuple(answer["base_ns"])}
        try:
            block = Block(trial=trial.trial, process=process, round=number, **fields)
        except ValueError as error:
            self._finish(Done(trial=trial.trial, status=FAILED, reason=f"impossible samples: {error}"))
            return None
        self._append(block)
        return block

    def _await_calm(self, target: Target, process: int) -> tuple[dict[str, float], bool]:
        """A reading of the sentinels, taken again for a while where the machine is not itself.

        A round measured then would have to be measured again; but no more than a part of the run is spent waiting.
        The second item says that this part is spent and the machine not back: a second attempt would be no better.
        """
        reading = self._read_sentinels(target, process)
        start = time.monotonic()
        left_s = _PATIENT_SHARE * (start - self._start) - self._waited_s
        hopeless = False
        while not self._drift.is_calm(target.name, reading) and not self._is_over():
            waited_s = time.monotonic() - start
            hopeless = waited_s > left_s
            if self._protocol.retries == 0 or hopeless or waited_s > _MOST_PATIENCE_S:
                break
            time.sleep(_CALM_PAUSE_S)
            reading = self._read_sentinels(target, process)
        self._waited_s += time.monotonic() - start
        return reading, hopeless

    def _read_sentinels(self, target: Target, process: int) -> dict[str, float]:
        return self._ask(target, process, self._crew.worker(target, process), {"do": "sentinel"})

    def _ask(self, target: Target, process: int, worker: WorkerProcess, request: dict[str, Any]) -> dict[str, Any]:
        """An answer that the run can do without: a lost worker is replaced when it is next needed."""
        try:
            answer = worker.ask(request)
        except WorkerLostError:
            self._crew.dismiss(target, process)
            return {}
        return {} if "failed" in answer or "skipped" in answer else answer

    def _worker_started(self, target: Target, process: int, worker: WorkerProcess) -> None:
        self._overheads[target.name].append(worker.overhead_ns)
        self._append(Overhead(target=target.name, process=process, ns=worker.overhead_ns))

    def _finish(self, verdict: Done) -> None:
        self._done_count += verdict.trial in self._planned and verdict.trial not in self._done
        self._done[verdict.trial] = verdict
        self._append(verdict)
        self._report("")

    def _append(self, *records: Record) -> None:
        if records:
            self._writer.append(records)

    def _report(self, doing: str) -> None:
        seconds = time.monotonic() - self._start
        done, total = self._done_count, len(self._plan.trials)
        fresh = done - self._done_before
        left_s = seconds / fresh * (total - done) if fresh else None
        if self._deadline is not None:
            remaining = max(0.0, self._deadline - time.monotonic())
            left_s = min(left_s, remaining) if left_s is not None else remaining
        self._progress(Progress(done=done, total=total, seconds=seconds, left_s=left_s, doing=doing))

    def _stop(self) -> None:
        self._stopped = True

    def _is_over(self) -> bool:
        return self._stopped or (self._deadline is not None and time.monotonic() > self._deadline)
