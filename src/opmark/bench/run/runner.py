"""Run a suite: a short look at everything, then passes that refine the labels where it pays.

The run can end at any moment. Every look is a block of the journal, and every journal gives labels with their standard
errors, so that a longer run is the same run with smaller errors (decision 0022).
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from opmark.bench.clock.machine import caches
from opmark.bench.clock.protocol import protocol_named
from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.passes import PlannedLook, again_plan, first_look, is_settled, next_pass, stints, weights
from opmark.bench.run.progress import RunProgress, RunSummary, on_interrupt
from opmark.bench.suite.capturing import PlanProgress
from opmark.bench.suite.plan import Plan, plan
from opmark.bench.suite.suite import Suite
from opmark.bench.worker.backend import BACKENDS, adapted
from opmark.bench.worker.pool import COMMAND, WorkerLostError, WorkerPool, WorkerProcess, refusal
from opmark.core.hardware.target import Target
from opmark.core.kernels.folding import TrialLabels
from opmark.core.measurements.estimate import median
from opmark.core.measurements.journal import calm_of, labels_of_trials, read_journal
from opmark.core.measurements.measurement import FAILED, USABLE
from opmark.core.measurements.records import Block, Done, Header, KernelTrial, Overhead, Record, Trial
from opmark.core.units import counted

# A small suite is spread over at least this many processes per target, each with at least so many looks.
_PROCESSES = 4
_LEAST_LOOKS = 4
# The first repeats come at once.
_REPEATS_FIRST = 3
# Fitting labels takes at most this share of the time.
_FITTING_SHARE = 0.1
# More looks at networks take this share of the first pass, from its beginning to its end, and give a network at most
# so many in it.
_NETWORKS_SHARE = 0.2
_NETWORK_LOOKS = 8


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
    refine: bool = True,
    until: float | None = None,
) -> RunSummary:
    """Measure `suite` into `journal`, continuing an earlier run; `budget_s` overrides the suite's own budget.

    Planning does not count. With `until`, a time of `time.monotonic`, the run ends then, but not before its budget.
    With the status `again`, only trials that have this status in the journal are measured once more. Without `refine`,
    the run ends after the first look at every trial. The first Ctrl-C lets the current look finish. Raises
    `MeasurementError` while another run writes to the journal, `ContentError` if the journal belongs to another suite
    or machine, `NothingSelectedError` if no trial has the status `again`.
    """
    header = Header(suite=suite.name, suite_id=suite.id, quality=suite.quality)
    # Plan before creating the journal, so that an impossible plan leaves no file.
    begun = time.monotonic()

    def planning(now: PlanProgress) -> None:
        seconds = time.monotonic() - begun
        progress(RunProgress(done=now.done, total=now.total, seconds=seconds, left_s=now.left_s, doing=now.doing))

    trials = plan(suite, shard=shard, cache=cache, progress=planning)
    budget_s = budget_s or suite.budget_s or 0.0
    if again:
        trials = again_plan(trials, read_journal(journal), again)
    with JournalWriter(journal, header) as writer:
        return run_plan(
            trials,
            writer,
            journal,
            budget_s=budget_s if until is None else max(budget_s, until - time.monotonic(), 1e-9),
            progress=progress,
            command=command,
            again={trial.trial for trial in trials.trials} if again else frozenset(),
            refine=refine,
        )


def run_plan(
    trials: Plan,
    writer: JournalWriter,
    path: Path,
    *,
    budget_s: float | None = None,
    progress: Callable[[RunProgress], None] = lambda _: None,
    command: Sequence[str] = COMMAND,
    again: Collection[str] = frozenset(),
    refine: bool = True,
) -> RunSummary:
    """Measure the trials of a plan into the journal of `writer`, as `run` does; `again` are measured once more."""
    return _Run(
        trials, writer=writer, path=path, budget_s=budget_s, progress=progress, command=command, again=again
    ).go(refine=refine)


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
        again: Collection[str],
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
        found = self._found = writer.found
        self._known = set(found.trials)
        self._blocks = {trial.trial: list(found.blocks.get(trial.trial, ())) for trial in trials.trials}
        self._lost = {key: done for key, done in found.done.items() if done.status not in USABLE and key not in again}
        self._again = set(again)
        self._seen = sum(1 for trial in trials.trials if self._is_seen(trial))
        self._seen_before = self._seen
        self._overheads: dict[str, list[float]] = defaultdict(list)
        for overhead in found.overheads:
            self._overheads[overhead.target].append(overhead.ns)
        self._number = found.rounds
        # Every worker has a number of its own: a trial's looks are in different processes.
        used = [block.process for blocks in found.blocks.values() for block in blocks]
        self._next_process = 1 + max([*used, *(overhead.process for overhead in found.overheads)], default=-1)
        self._process: dict[str, int] = {}
        self._looks: Counter[str] = Counter()
        self._cost_s: dict[str, float] = {}
        # Seconds for more looks at networks in the first pass, by target.
        self._networks_s: dict[str, float] = defaultdict(float)
        self._waited_s = 0.0
        self._stopped = False
        # The looks of the present refining pass, made and planned, and its beginning; labels that are not settled yet.
        self._refined = (0, 0)
        self._pass_start = self._start
        self._unsettled = 0
        # Trials that failed after they had a label keep it, and are left alone.
        self._spoiled: set[str] = set()
        self._chance = random.Random()

    def go(self, *, refine: bool) -> RunSummary:
        """Measure until all labels are known well enough, the budget is spent, or the run is interrupted."""
        names = sorted({target.backend for target in self._plan.targets})
        self._writer.start_session(probe(BACKENDS.load(name) for name in names), self._plan.targets)
        with on_interrupt(self._stop):
            try:
                self._look_at_everything()
                if refine:
                    self._refine()
            finally:
                self._pool.dismiss_all()
        return self._summary()

    def _look_at_everything(self) -> None:
        """Look once at every trial without a label; some looks repeat earlier ones in another process.

        The repeats tell how much processes differ on this machine, which is the error of every label from one process.
        """
        todo = [trial for trial in self._plan.trials if not self._is_seen(trial)]
        sizes = Counter(trial.target for trial in todo)
        earlier: dict[str, list[Trial]] = defaultdict(list)
        repeats_owed = Counter(dict.fromkeys(sizes, _REPEATS_FIRST * self._protocol.repeat_every))
        for stint in stints(todo):
            name = stint[0].target
            share = max(_LEAST_LOOKS, sizes[name] // _PROCESSES)
            if self._looks[name] >= min(share, self._protocol.looks_per_process):
                self._renew(name)
            for trial in stint:
                if self._is_over():
                    return
                self._look(first_look(trial))
                if self._is_seen(trial) and trial.trial not in self._lost:
                    earlier[name].append(trial)
            repeats_owed[name] += len(stint)
            fresh = [trial for trial in earlier[name] if self._is_single_elsewhere(trial)]
            self._chance.shuffle(fresh)
            while fresh and repeats_owed[name] >= self._protocol.repeat_every and not self._is_over():
                repeats_owed[name] -= self._protocol.repeat_every
                self._look(first_look(fresh.pop()))
            self._look_at_networks_again(name, elapsed_s=self._seconds / len(sizes))

    def _look_at_networks_again(self, name: str, *, elapsed_s: float) -> None:
        """Look at networks of the target `name` in one more process each, while a share of its time is left.

        The few samples of a look tell one moment, and a run that ends within its first pass judges predictors by them.
        Looks all over the pass meet the same states of the machine as the looks at kernels.
        """
        networks = [trial for trial in self._plan.networks if trial.target == name and trial.trial not in self._lost]
        while not self._is_over() and self._networks_s[name] < _NETWORKS_SHARE * elapsed_s:
            due = [trial for trial in networks if self._is_seen(trial) and self._is_owed_a_look(trial)]
            if not due:
                return
            chosen = max(due, key=self._gain_per_second)
            self._look(first_look(chosen))
            self._networks_s[name] += self._cost_s[chosen.trial]

    def _is_owed_a_look(self, trial: Trial) -> bool:
        """Return True if few processes have measured `trial`, and the current one has not."""
        processes = self._processes(trial)
        few = len(processes) < _NETWORK_LOOKS and trial.trial not in self._spoiled
        return few and self._process.get(trial.target) not in processes

    def _gain_per_second(self, trial: Trial) -> float:
        """The variance that one more process removes per second, in units of that between processes."""
        count = len(self._processes(trial))
        return 1 / (count * (count + 1) * self._cost_s.get(trial.trial, 1.0))

    def _processes(self, trial: Trial) -> set[int]:
        return {block.process for block in self._blocks[trial.trial]}

    def _refine(self) -> None:
        """Look again, pass by pass, where it removes most uncertainty per second."""
        weight = weights(self._plan)
        wanted = set(self._again)
        while not self._is_over():
            self._report("choosing labels to refine")
            begun = time.monotonic()
            labels = self._labels()
            pass_s = max(self._protocol.pass_s, (time.monotonic() - begun) / _FITTING_SHARE)
            left = [trial for trial in self._plan.trials if trial.trial not in self._spoiled]
            looks = next_pass(
                left, labels, weight=weight, cost_s=self._cost_s, protocol=self._protocol, wanted=wanted, pass_s=pass_s
            )
            if not looks:
                return
            self._refined, self._pass_start = (0, len(looks)), time.monotonic()
            self._unsettled = sum(not is_settled(found, self._protocol) for found in labels.values())
            by_target: dict[str, list[PlannedLook]] = defaultdict(list)
            for look in looks:
                by_target[look.trial.target].append(look)
            for name, found in by_target.items():
                self._renew(name)
                self._chance.shuffle(found)
                for look in found:
                    if self._is_over():
                        return
                    if self._looks[name] >= self._protocol.looks_per_process:
                        self._renew(name)
                    self._look(look)
                    self._refined = (self._refined[0] + 1, len(looks))
                    wanted.discard(look.trial.trial)

    def _look(self, look: PlannedLook) -> None:
        """Measure one look in the current process of its target, and write its blocks."""
        trial = look.trial
        target = self._targets[trial.target]
        process = self._current(target.name)
        self._report(trial.kernel.kind if isinstance(trial, KernelTrial) else trial.network)
        begun, at_s = time.monotonic(), int(time.time())
        try:
            answer = self._pool.worker(target, process).ask(self._request(look))
        except WorkerLostError as error:
            self._pool.dismiss(target, process)
            self._process.pop(target.name, None)
            answer = {"failed": error.message}
        self._looks[target.name] += 1
        was_seen = self._is_seen(trial)
        self._waited_s += answer.get("waited_s", 0.0)
        refused = refusal(answer)
        new: list[Record] = [] if trial.trial in self._known else [trial]
        self._known.add(trial.trial)
        if refused is None:
            try:
                blocks = [block_of(fields, trial.trial, process, self._number, at_s) for fields in answer["blocks"]]
            except ValueError as error:
                refused = (FAILED, f"impossible samples: {error}")
            else:
                self._number += 1
                self._blocks[trial.trial] += blocks
                new += blocks
        if refused is not None and self._blocks[trial.trial]:
            self._spoiled.add(trial.trial)
        elif refused is not None:
            self._lost[trial.trial] = Done(trial=trial.trial, status=refused[0], reason=refused[1])
            new.append(self._lost[trial.trial])
        self._writer.append(new)
        self._cost_s[trial.trial] = (time.monotonic() - begun) / look.share
        self._seen += not was_seen
        self._report("")

    def _request(self, look: PlannedLook) -> dict[str, Any]:
        patience_s = max(0.0, self._protocol.patience * self._seconds - self._waited_s)
        request: dict[str, Any] = {"patience_s": min(self._protocol.gate_limit_s, patience_s)}
        if isinstance(look.trial, KernelTrial):
            return request | {"do": "kernel", "labels": look.labels, "kernel": look.trial.kernel.content()}
        spec = self._plan.models[look.trial.trial]
        return request | {"do": "network", "model": spec.model, "dimensions": dict(spec.dimensions)}

    def _current(self, name: str) -> int:
        """The number of the process that measures on the target `name` now."""
        if name not in self._process:
            self._process[name] = self._next_process
            self._next_process += 1
            self._looks[name] = 0
        return self._process[name]

    def _renew(self, name: str) -> None:
        """Let the next look on the target `name` run in a new process."""
        process = self._process.pop(name, None)
        if process is not None:
            self._pool.dismiss(self._targets[name], process)

    def _is_seen(self, trial: Trial) -> bool:
        """Return True if `trial` has all its labels or cannot be measured; a kill may have cut a look short."""
        found = {block.label for block in self._blocks[trial.trial]}
        return trial.trial in self._lost or found.issuperset(first_look(trial).labels)

    def _is_single_elsewhere(self, trial: Trial) -> bool:
        """Return True if one process has measured `trial`, and it is not the current one."""
        processes = self._processes(trial)
        return len(processes) == 1 and self._process.get(trial.target) not in processes

    def _labels(self) -> dict[str, TrialLabels]:
        whole = self._found.grown(self._plan.trials, self._blocks)
        return labels_of_trials(
            whole.trials,
            {key: blocks for key, blocks in whole.blocks.items() if key in self._blocks and blocks},
            calm=calm_of([whole]),
            rounds={item.round: item.ns for item in whole.sentinels},
            overhead_ns={name: median(values) for name, values in self._overheads.items()},
        )

    def _summary(self) -> RunSummary:
        labels = self._labels()
        statuses = Counter(found.status for found in labels.values())
        statuses.update(done.status for key, done in self._lost.items() if key in self._blocks)
        return RunSummary(
            journal=self._path,
            suite=self._plan.suite.name,
            planned=len(self._plan.trials),
            done=self._seen,
            statuses=dict(sorted(statuses.items())),
            seconds=self._seconds,
            interrupted=self._stopped,
            kernels=sum(1 for trial in self._plan.kernels if trial.trial in labels),
            networks=sum(1 for trial in self._plan.networks if trial.trial in labels),
            waited_seconds=self._waited_s,
            median_standard_error=median([found.main.standard_error for found in labels.values()]) if labels else None,
        )

    def _worker_started(self, target: Target, process: int, worker: WorkerProcess) -> None:
        self._overheads[target.name].append(worker.overhead_ns)
        self._writer.append([Overhead(target=target.name, process=process, ns=worker.overhead_ns)])

    @property
    def _seconds(self) -> float:
        """The time since the run began."""
        return time.monotonic() - self._start

    def _report(self, doing: str) -> None:
        seconds = self._seconds
        total = len(self._plan.trials)
        fresh = self._seen - self._seen_before
        left_s = seconds / fresh * (total - self._seen) if fresh and self._seen < total else None
        if self._deadline is not None:
            remaining = max(0.0, self._deadline - time.monotonic())
            left_s = min(left_s, remaining) if left_s is not None else remaining
        done = self._seen
        if self._refined[1]:
            done, total = self._refined
            if self._deadline is None and done:
                left_s = (time.monotonic() - self._pass_start) / done * (total - done)
            if doing and done < total:
                unsettled = counted(self._unsettled, "label")
                doing = f"refining {doing}, {unsettled} not sure enough"
        self._progress(RunProgress(done=done, total=total, seconds=seconds, left_s=left_s, doing=doing))

    def _stop(self) -> None:
        self._stopped = True

    def _is_over(self) -> bool:
        return self._stopped or (self._deadline is not None and time.monotonic() > self._deadline)


def block_of(fields: Mapping[str, Any], trial: str, process: int, number: int, at_s: int | None = None) -> Block:
    """The record of a worker's answer. Raises `ValueError` for impossible samples."""
    sentinels = {name: tuple(readings) for name, readings in fields.get("sentinels", {}).items()}
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return Block(trial=trial, process=process, round=number, at_s=at_s, **{**fields, **lists, "sentinels": sentinels})
