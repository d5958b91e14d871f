"""Measure which pairs of operators a runtime fuses, by its own graph and by the clock."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.bench.clock.machine import caches
from opmark.bench.clock.protocol import MeasuringProtocol, protocol_named
from opmark.bench.fusion.operators import chain, shapes
from opmark.bench.fusion.pairs import Pair
from opmark.bench.run.environment import probe
from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.progress import RunProgress
from opmark.bench.worker.backend import BACKENDS, available_target, backend_of
from opmark.bench.worker.pool import WorkerLostError, WorkerPool, WorkerProcess, refusal
from opmark.core.canonical import content_id
from opmark.core.errors import OpMarkError
from opmark.core.hardware.target import Target
from opmark.core.kernels.fusion import FusionMeasurement, PairVerdict, pair_verdicts
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.measurement import FAILED, OK, SKIPPED
from opmark.core.measurements.records import Done, FusionRound, FusionTrial, Header, Overhead, Record

COMMAND = (sys.executable, "-m", "opmark.bench.fusion.worker")
SUITE = "fusion"


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionReport:
    """The verdicts on all requested pairs, and the rows behind them."""

    journal: Path
    verdicts: tuple[PairVerdict, ...]
    rows: tuple[FusionMeasurement, ...]
    seconds: float
    complete: bool

    @property
    def failures(self) -> tuple[FusionMeasurement, ...]:
        """The rows without a measurement."""
        return tuple(row for row in self.rows if row.status != OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    trial: FusionTrial
    pair: Pair
    kernels: tuple[Kernel, ...]
    refused: str = ""


def measure_fusion(
    pairs: Sequence[Pair],
    target_names: Sequence[str],
    *,
    journal: Path,
    quality: str = "full",
    budget_s: float | None = None,
    progress: Callable[[RunProgress], None] = lambda _: None,
    command: Sequence[str] = COMMAND,
) -> FusionReport:
    """Measure `pairs` on the targets into `journal`, without those it already has, and report all of them.

    Raises `UnavailableError` if a target cannot be measured here, `ContentError` if the journal belongs to another
    machine or quality, `MeasurementError` while another run writes to it.
    """
    # Check everything that may be refused before creating the journal.
    protocol = protocol_named(quality)
    targets = [available_target(name)[1] for name in target_names]
    plan = [item for target in targets for item in _planned(target, pairs)]
    header = Header(suite=SUITE, suite_id=content_id([SUITE, quality]), quality=quality)
    start = time.monotonic()
    with JournalWriter(journal, header) as writer:
        environment = probe(BACKENDS.load(name) for name in sorted({target.backend for target in targets}))
        writer.start_session(environment, targets)
        run = _Run(writer, targets, protocol, command)
        try:
            run.measure_all(plan, start=start, budget_s=budget_s, progress=progress)
        finally:
            run.close()
    found = read_journal(journal)
    wanted = {item.trial.trial for item in plan}
    rows = tuple(
        row
        for key, row in zip([k for k in found.fusion_trials if k in found.done], found.fusions, strict=True)
        if key in wanted
    )
    return FusionReport(
        journal=journal,
        verdicts=pair_verdicts(rows),
        rows=rows,
        seconds=time.monotonic() - start,
        complete=len(rows) == len(plan),
    )


class _Run:
    """The workers of one report and the journal they write to."""

    def __init__(
        self, writer: JournalWriter, targets: Sequence[Target], protocol: MeasuringProtocol, command: Sequence[str]
    ) -> None:
        self._writer = writer
        self._targets = {target.name: target for target in targets}
        self._protocol = protocol
        self._pool = WorkerPool(self._protocol, caches(), self._worker_started, command)

    def measure_all(
        self,
        plan: Sequence[_Planned],
        *,
        start: float,
        budget_s: float | None,
        progress: Callable[[RunProgress], None],
    ) -> None:
        """Measure every item of `plan` that the journal lacks, until `budget_s` seconds after `start`."""
        found = self._writer.found
        left = [item for item in plan if item.trial.trial not in found.done]

        def report(done: int, left_s: float | None, doing: str) -> None:
            seconds = time.monotonic() - start
            progress(RunProgress(done=done, total=len(plan), seconds=seconds, left_s=left_s, doing=doing))

        for number, item in enumerate(left):
            seconds = time.monotonic() - start
            if budget_s is not None and seconds > budget_s:
                return
            left_s = seconds / number * (len(left) - number) if number else None
            report(len(plan) - len(left) + number, left_s, item.trial.pair)
            self.measure(item, new=item.trial.trial not in found.fusion_trials)
        report(len(plan), 0.0, "")

    def measure(self, item: _Planned, *, new: bool) -> None:
        """Measure all rounds of one pair at one shape in every process, then write its verdict."""
        records: list[Record] = [item.trial] if new else []
        if item.refused:
            self._writer.append([*records, Done(trial=item.trial.trial, status=SKIPPED, reason=item.refused)])
            return
        self._writer.append(records)
        rounds: list[Record] = []
        for process in range(self._protocol.processes):
            answer = self._ask(item, process)
            refused = refusal(answer)
            if refused is not None:
                self._writer.append([Done(trial=item.trial.trial, status=refused[0], reason=refused[1])])
                return
            try:
                rounds += _rounds(item.trial.trial, process, answer)
            except ValueError as error:
                reason = f"impossible samples: {error}"
                self._writer.append([Done(trial=item.trial.trial, status=FAILED, reason=reason)])
                return
        # All at once: after a kill, the whole pair is measured again.
        self._writer.append([*rounds, Done(trial=item.trial.trial, status=OK)])

    def close(self) -> None:
        """Stop the workers."""
        self._pool.dismiss_all()

    def _ask(self, item: _Planned, process: int) -> dict[str, Any]:
        target = self._targets[item.trial.target]
        request = {
            "do": "fusion",
            "operators": item.pair.operators,
            "split": item.pair.split,
            "kernels": [kernel.content() for kernel in item.kernels],
        }
        try:
            return self._pool.worker(target, process).ask(request)
        except WorkerLostError as error:
            self._pool.dismiss(target, process)
            return {"failed": error.message}

    def _worker_started(self, target: Target, process: int, worker: WorkerProcess) -> None:
        self._writer.append([Overhead(target=target.name, process=process, ns=worker.overhead_ns)])


def _rounds(trial: str, process: int, answer: dict[str, Any]) -> list[FusionRound]:
    common = {name: answer[name] for name in ("white_box", "kernels", "inserted_saved")}
    rounds = []
    for item in answer["rounds"]:
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in item.items()
        }
        rounds.append(FusionRound(trial=trial, process=process, **common, **fields))
    return rounds


def _planned(target: Target, pairs: Sequence[Pair]) -> list[_Planned]:
    language = backend_of(target.name).language
    found = []
    for pair in pairs:
        for shape in shapes(pair.domain, language):
            kernels: tuple[Kernel, ...] = ()
            refused = ""
            try:
                kernels = chain(pair.operators, shape, language)
            except OpMarkError as error:
                refused = error.message
            trial = FusionTrial(
                trial=content_id([target.id, SUITE, pair.name, shape, [kernel.key for kernel in kernels]]),
                target=target.name,
                pair=pair.name,
                first=pair.first,
                second=pair.second,
                shape="x".join(map(str, shape)),
            )
            found.append(_Planned(trial=trial, pair=pair, kernels=kernels, refused=refused))
    return found
