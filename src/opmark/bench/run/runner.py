"""Run a suite: chunks of trials in shuffled rounds over several processes, stored block by block."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opmark.bench.clock.machine import caches
from opmark.bench.clock.protocol import protocol_named
from opmark.bench.run.drift import Drift
from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.progress import RunProgress, RunSummary, on_interrupt
from opmark.bench.run.repeats import repeat_plan
from opmark.bench.run.verdict import OpenTrial, begin, judge
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import Suite
from opmark.bench.worker.backend import BACKENDS, adapted
from opmark.bench.worker.calls import allocated_bytes
from opmark.bench.worker.pool import COMMAND, WorkerLostError, WorkerPool, WorkerProcess, refusal
from opmark.core.hardware.target import Target
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import at_clock, read_journal
from opmark.core.measurements.measurement import FAILED
from opmark.core.measurements.records import Block, Done, Header, KernelTrial, Overhead, Record, Trial

_NETWORKS_PER_CHUNK = 4
# Processes above this number are rarely needed and would hold memory all the time.
_LASTING_PROCESSES = 2
# Waiting for a calm machine: the most seconds at a time, the share of the whole run, and the pause between readings.
_MOST_PATIENCE_S = 60.0
_PATIENT_SHARE = 0.5
_CALM_PAUSE_S = 0.3
# A chunk ends when at most a quarter of a full chunk is left.
_STAYING_SHARE = 4


def run(
    suite: Suite,
    *,
    journal: Path,
    budget_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: Callable[[RunProgress], None] = lambda _: None,
    cache: Path | None = None,
    command: Sequence[str] = COMMAND,
    again: str = "",
) -> RunSummary:
    """Measure `suite` into `journal`, continuing an earlier run; `budget_s` overrides the suite's own budget.

    With the status `again`, only trials that have this status in the journal are measured once more. The first Ctrl-C
    lets the current block finish. Raises `MeasurementError` while another run writes to the journal, `ContentError` if
    the journal belongs to another suite or machine, `NothingSelectedError` if no trial has the status `again`.
    """
    header = Header(suite=suite.name, suite_id=suite.id, quality=suite.quality)
    # Plan before creating the journal, so that an impossible plan leaves no file.
    trials = plan(suite, shard=shard, cache=cache)
    if again:
        trials = repeat_plan(trials, read_journal(journal), again)
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
        progress: Callable[[RunProgress], None],
        command: Sequence[str],
    ) -> None:
        self._plan = trials
        self._path = path
        self._protocol = adapted(protocol_named(trials.suite.quality), trials.targets)
        self._writer = writer
        self._progress = progress
        self._start = time.monotonic()
        self._deadline = self._start + budget_s if budget_s else None
        self._pool = WorkerPool(self._protocol, caches(), self._worker_started, command)
        self._targets = {target.name: target for target in trials.targets}
        found = writer.found
        self._known = set(found.trials)
        # The blocks of finished trials are most of a journal and no longer needed.
        self._earlier = {trial: blocks for trial, blocks in found.blocks.items() if trial not in found.done}
        writer.found = replace(found, blocks=self._earlier)
        self._done = dict(found.done)
        # Counted once and updated: progress is reported with every block, and plans are long.
        self._planned = {trial.trial for trial in trials.trials}
        self._done_count = self._done_before = len(self._planned & self._done.keys())
        self._round = found.rounds
        self._drifted = set(found.drifted_rounds)
        self._drift = Drift(found.sentinels, self._protocol.sentinel_drift)
        self._overheads: dict[str, list[float]] = defaultdict(list)
        for overhead in found.overheads:
            self._overheads[overhead.target].append(overhead.ns)
        # Trials without a verdict, by target.
        self._open: dict[str, dict[str, OpenTrial]] = defaultdict(dict)
        self._waited_s = 0.0
        self._stopped = False
        self._chance = random.Random()

    def go(self) -> RunSummary:
        """Measure until all trials are done, the budget is spent, or the run is interrupted."""
        self._begin_session()
        with on_interrupt(self._stop):
            try:
                for number, (chunk, is_last) in enumerate(self._chunks(), start=1):
                    self._measure(chunk, is_last=is_last)
                    if number % self._protocol.restart_chunks == 0:
                        self._pool.dismiss_all()
                if not self._stopped:
                    # Without time left, trials with most blocks get their verdict. An interrupted run continues later.
                    for name, states in self._open.items():
                        self._judge(self._targets[name], states, final=True)
            finally:
                self._pool.dismiss_all()
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
        self._writer.start_session(probe(BACKENDS.load(name) for name in names), self._plan.targets)

    def _chunks(self) -> Iterator[tuple[list[Trial], bool]]:
        """The open trials in chunks of one target, alternating between targets; chunks shrink as time runs out.

        The second item is True if the chunk must finish before the next one of its target, or is the last one.
        """
        left: dict[tuple[str, bool], list[Trial]] = defaultdict(list)
        for trial in self._plan.trials:
            if trial.trial not in self._done:
                left[trial.target, isinstance(trial, KernelTrial)].append(trial)
        sizes = {key: len(trials) for key, trials in left.items()}
        while left:
            # Networks come before kernels, then the target with the largest share left.
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
        """The number of trials that fit in the time left, at the pace so far."""
        finished = self._done_count - self._done_before
        if self._deadline is None or not finished:
            return self._protocol.chunk_trials
        now = time.monotonic()
        return int((self._deadline - now) / ((now - self._start) / finished))

    def _measure(self, chunk: Sequence[Trial], *, is_last: bool) -> None:
        """Measure rounds over the trials of a chunk until nearly all have verdicts or time is up.

        The remaining trials stay open and join the next chunk: rounds of few trials spend most time on sentinels.
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
        for process, worker in self._pool.alive(target):
            if process > _LASTING_PROCESSES and process not in needed:
                self._pool.dismiss(target, process)
            else:
                self._ask(target, process, worker, {"do": "close", "trials": finished})

    def _judge(self, target: Target, states: dict[str, OpenTrial], *, final: bool) -> None:
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

    def _attempt(self, target: Target, process: int, states: Mapping[str, OpenTrial]) -> None:
        """Measure one round in one process, and repeat it if the sentinels show drift."""
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
        self, target: Target, process: int, states: Mapping[str, OpenTrial], number: int
    ) -> list[tuple[str, Block]]:
        """Measure one block of every trial that needs one, in random order."""
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
        worker = self._pool.worker(target, process)
        request: dict[str, Any] = {"trial": trial.trial, "label": which}
        if isinstance(trial, KernelTrial):
            request |= {"do": "kernel", "kernel": trial.kernel.content()}
        else:
            spec = self._plan.models[trial.trial]
            request |= {"do": "network", "model": spec.model, "dimensions": dict(spec.dimensions)}
        self._report(str(trial.kernel.kind if isinstance(trial, KernelTrial) else trial.network))
        try:
            answer = worker.ask(request)
        except WorkerLostError as error:
            self._pool.dismiss(target, process)
            answer = {"failed": error.message}
        refused = refusal(answer)
        if refused is not None:
            self._finish(Done(trial=trial.trial, status=refused[0], reason=refused[1]))
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
        """Read the sentinels, and wait for a while if the machine drifts.

        A round during drift would have to be repeated, but only a limited share of the run is spent waiting. The second
        item is True if this share is spent and the machine still drifts: then a repeat would not help.
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
        return self._ask(target, process, self._pool.worker(target, process), {"do": "sentinel"})

    def _ask(self, target: Target, process: int, worker: WorkerProcess, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to an optional request; empty if the worker is lost, which the pool then replaces."""
        try:
            answer = worker.ask(request)
        except WorkerLostError:
            self._pool.dismiss(target, process)
            return {}
        return {} if refusal(answer) else answer

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
        self._progress(RunProgress(done=done, total=total, seconds=seconds, left_s=left_s, doing=doing))

    def _stop(self) -> None:
        self._stopped = True

    def _is_over(self) -> bool:
        return self._stopped or (self._deadline is not None and time.monotonic() > self._deadline)
