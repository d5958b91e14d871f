import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench.fake import COMMAND, FAULTY_FOLDER
from tests.sealing import edit_journal

from opmark.bench import backends
from opmark.bench.clock.protocol import FULL, QUICK
from opmark.bench.run import runner
from opmark.bench.run.progress import RunProgress, RunSummary
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import Plan
from opmark.bench.suite.suite import KindSpec, Networks, Suite
from opmark.bench.worker.backend import BACKENDS
from opmark.bench.worker.pool import WorkerProcess
from opmark.core import registry
from opmark.core.errors import ContentError, MeasurementError, NothingSelectedError
from opmark.core.measurements.journal import Journal, read_journal
from opmark.core.measurements.records import KernelTrial, NetworkTrial, trial_key
from opmark.kinds import KINDS, work_of

ROOT = Path(__file__).resolve().parents[3]
SUITE = Suite(
    name="tiny",
    targets=("null-a-t1", "null-b-t1"),
    quality="quick",
    kinds={"gemm": KindSpec(count=8), "elementwise": KindSpec(count=6)},
)
# Imports everything once, then forks one run per journal named on its input: prints its process id, then its exit code.
SCRIPT = """
import os, sys
from pathlib import Path
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Suite
from tests.bench.forked_workers import address, fork_workers
fork_workers()
address()
suite = Suite(name="tiny", targets=("null-a-t1", "null-b-t1"), quality="quick",
              kinds={"gemm": KindSpec(count=50), "elementwise": KindSpec(count=30)})
plan(suite)
for line in sys.stdin:
    child = os.fork()
    if not child:
        summary = run(suite, journal=Path(line.rstrip()))
        print(summary.interrupted, summary.done, summary.planned, flush=True)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runs:
    """Runs of `SCRIPT`, each in a process of its own that may be killed."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, path: Path) -> int:
        self._tell(f"{path}")
        return int(self._line())

    def end(self) -> tuple[str, int]:
        """The summary, empty after a kill, and the exit code."""
        line = self._line()
        return (line, int(self._line())) if " " in line else ("", int(line))

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    command = [sys.executable, "-c", SCRIPT]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, cwd=ROOT
    ) as process:
        yield Runs(process)


def records(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_after(runs: Runs, path: Path, lines: int, pause_s: float = 0.0) -> None:
    child = runs.start(path)
    while records(path) < lines:
        time.sleep(0.002)
    time.sleep(pause_s)
    os.kill(child, signal.SIGKILL)
    assert runs.end() == ("", -signal.SIGKILL), "it must not have finished before it was killed"


def check_whole(journal: Journal) -> None:
    """Every trial has its labels, and no two looks of a trial are of the same process."""
    for trial, blocks in journal.blocks.items():
        seen = [(block.label, block.process) for block in blocks]
        assert len(seen) == len(set(seen)), trial
        assert {label for label, _ in seen} == {"hot", "rotated"}, trial
        assert len(seen) <= 6, trial
    assert set(journal.blocks) == set(journal.trials) == journal.measured


def test_a_suite_becomes_rows_with_every_label(tmp_path: Path) -> None:
    told: list[RunProgress] = []
    summary = run(SUITE, journal=tmp_path / "j.jsonl", progress=told.append)
    assert summary.complete
    assert summary.planned == summary.done == 28
    journal = read_journal(tmp_path / "j.jsonl")
    check_whole(journal)
    assert {row.target for row in journal.measurements} == {"null-a-t1", "null-b-t1"}
    for row in journal.measurements:
        assert row.status == "ok"
        assert row.latency_hot_ns is not None
        assert row.latency_rotated_ns is not None
        assert row.latency_rotated_ns > 0.98 * row.latency_hot_ns
        assert row.overhead_ns == pytest.approx(2000, rel=0.02)
        assert len(row.hot_quantiles_ns) == len(row.rotated_quantiles_ns) == 21
    assert any(step.done == step.total == 28 for step in told)
    assert told[-1].done == told[-1].total
    assert any(step.left_s is not None for step in told)


def test_labels_match_the_formula_behind_the_null_backend(tmp_path: Path) -> None:
    from opmark.bench.backends.null import kernel_ns

    run(SUITE, journal=tmp_path / "j.jsonl")
    journal = read_journal(tmp_path / "j.jsonl")
    targets = {target.name: target for target in journal.targets}
    for row in journal.measurements:
        hot = kernel_ns(row.kernel, row.work, targets[row.target], rotated=False)
        assert row.latency_hot_ns == pytest.approx(hot, rel=0.02)


def test_a_second_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    run(SUITE, journal=path)
    before = read_journal(path)
    again = run(SUITE, journal=path)
    after = read_journal(path)
    assert again.complete
    assert after.blocks == before.blocks
    assert again.seconds > 0


def test_looks_go_on_where_labels_are_worse_than_wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "protocol_named", lambda _: replace(FULL, enough=0.0015, most_looks=4))
    told: list[RunProgress] = []
    summary = run(replace(SUITE, quality="full"), journal=tmp_path / "j.jsonl", progress=told.append)
    journal = read_journal(tmp_path / "j.jsonl")
    check_whole(journal)
    looks = [found.main.processes for found in journal.labels.values()]
    assert min(looks) >= FULL.processes
    assert max(looks) <= 4
    assert all(found.main.standard_error <= 0.0015 for found in journal.labels.values() if found.main.processes < 4)
    assert summary.median_standard_error is not None
    assert summary.median_standard_error < 0.003
    assert (summary.kernels, summary.networks, summary.waited_seconds) == (28, 0, 0.0)
    refining = [step for step in told if re.fullmatch(r"refining .+, \d+ labels? not sure enough", step.doing)]
    assert refining
    assert any(step.left_s is not None for step in refining), "without a budget, the time left of the pass"
    assert any(step.doing == "choosing labels to refine" for step in told)
    assert all(step.done <= step.total for step in told)


def test_a_run_with_an_end_does_not_add_its_planning_to_it(tmp_path: Path) -> None:
    begun = time.monotonic()
    over = run(SUITE, journal=tmp_path / "j.jsonl", budget_s=1e-6, until=begun)
    assert over.done < over.planned, "planning took longer than all the time"
    assert run(SUITE, journal=tmp_path / "j.jsonl", budget_s=600, until=begun).complete, "its budget comes first"


def test_without_refining_everything_is_seen_and_little_of_it_twice(tmp_path: Path) -> None:
    summary = run(replace(SUITE, quality="full"), journal=tmp_path / "j.jsonl", refine=False)
    assert summary.complete
    looks = [found.main.processes for found in read_journal(tmp_path / "j.jsonl").labels.values()]
    assert sum(looks) <= 1.5 * len(looks)


def test_networks_are_seen_again_in_other_processes_of_the_first_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "_NETWORKS_SHARE", 1.0)
    suite = replace(
        SUITE,
        targets=("null-a-t1",),
        kinds={"elementwise": KindSpec(count=60)},
        networks=Networks(training=("light-squeezenet",), held_out=("light-alexnet",)),
    )
    summary = run(suite, journal=tmp_path / "j.jsonl", refine=False)
    assert (summary.complete, summary.networks) == (True, 2)
    journal = read_journal(tmp_path / "j.jsonl")
    processes = {
        trial.network: [block.process for block in journal.blocks[key]]
        for key, trial in journal.trials.items()
        if isinstance(trial, NetworkTrial)
    }
    assert all(len(set(seen)) == len(seen) >= 3 for seen in processes.values()), processes
    last = max(block.round for blocks in journal.blocks.values() for block in blocks)
    rounds = [
        block.round
        for key, trial in journal.trials.items()
        if isinstance(trial, NetworkTrial)
        for block in journal.blocks[key]
    ]
    assert max(rounds) - min(rounds) > last / 3, "spread over the run"


def test_what_failed_can_be_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    ask = WorkerProcess.ask
    monkeypatch.setattr(WorkerProcess, "ask", lambda *_: {"failed": "no memory"})
    monkeypatch.setattr(WorkerProcess, "begin", lambda self: setattr(self, "overhead_ns", 1.0))
    assert set(run(SUITE, journal=path).statuses) == {"failed"}
    monkeypatch.undo()
    assert WorkerProcess.ask is ask
    with pytest.raises(NothingSelectedError, match="nothing of this suite is doubtful"):
        run(SUITE, journal=path, again="doubtful")
    assert set(run(SUITE, journal=path, again="failed").statuses) == {"ok"}


@pytest.mark.parametrize("lines", [12, 150, 300])
def test_a_killed_run_goes_on_without_measuring_anything_twice(tmp_path: Path, runs: Runs, lines: int) -> None:
    path = tmp_path / "j.jsonl"
    kill_after(runs, path, lines)
    kept = path.read_bytes()
    # What a cut in the middle of a record looks like.
    path.write_bytes(kept[:-9])
    whole = kept[: kept[:-9].rfind(b"\n") + 1]
    runs.start(path)
    assert runs.end() == ("False 160 160", 0)
    assert path.read_bytes().startswith(whole), "what was finished stays as it was"
    check_whole(read_journal(path))


def test_twenty_kills_at_random_moments_lose_nothing_and_repeat_nothing(tmp_path: Path, runs: Runs) -> None:
    path = tmp_path / "j.jsonl"
    chance = random.Random(20)
    for _ in range(20):
        kill_after(runs, path, records(path) + chance.randrange(10), chance.uniform(0, 0.001))
    finished = path.read_bytes()
    finished = finished[: finished.rfind(b"\n") + 1]
    runs.start(path)
    assert runs.end()[1] == 0
    assert path.read_bytes().startswith(finished)
    check_whole(read_journal(path))


def test_a_kernel_whose_samples_are_no_numbers_becomes_a_failed_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask = WorkerProcess.ask

    def broken(self: WorkerProcess, request: Mapping[str, Any]) -> dict[str, Any]:
        answer = ask(self, request)
        for block in answer.get("blocks", ()):
            block["ns"] = [math.nan for _ in block["ns"]]
        return answer

    monkeypatch.setattr(WorkerProcess, "ask", broken)
    summary = run(SUITE, journal=tmp_path / "j.jsonl")
    assert summary.statuses == {"failed": summary.planned}
    reasons = {done.reason for done in read_journal(tmp_path / "j.jsonl").done.values()}
    assert all(reason.startswith("impossible samples") for reason in reasons)


def test_ctrl_c_stops_cleanly_and_the_rest_follows_later(tmp_path: Path, runs: Runs) -> None:
    path = tmp_path / "j.jsonl"
    child = runs.start(path)
    while records(path) < 100:
        time.sleep(0.005)
    os.kill(child, signal.SIGINT)
    summary, code = runs.end()
    interrupted, done, planned = summary.split()
    assert code == 0
    assert interrupted == "True"
    assert int(done) < int(planned)
    assert path.read_bytes().endswith(b"\n")
    read_journal(path)
    runs.start(path)
    runs.end()
    check_whole(read_journal(path))


def test_a_budget_ends_the_run_and_leaves_the_rest_for_later(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    summary = run(replace(SUITE, kinds={"gemm": KindSpec(count=400)}), journal=path, budget_s=0.7)
    assert not summary.complete
    assert not summary.interrupted
    read_journal(path)


def test_another_suite_or_machine_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    run(SUITE, journal=path)
    before = path.read_bytes()
    with pytest.raises(ContentError, match="belongs to suite 'tiny'"):
        run(replace(SUITE, seed=1), journal=path)
    assert path.read_bytes() == before
    edit_journal(path, lambda line: line.replace('"processors":', '"processors":1'))
    other = path.read_bytes()
    with pytest.raises(ContentError, match="another machine: processors"):
        run(SUITE, journal=path)
    assert path.read_bytes() == other


def test_two_runs_on_one_journal_are_refused_in_one_sentence(tmp_path: Path) -> None:
    from opmark.bench.run.journal_writer import JournalWriter
    from opmark.core.measurements.records import Header

    path = tmp_path / "j.jsonl"
    header = Header(suite=SUITE.name, suite_id=SUITE.id, quality=SUITE.quality)
    with JournalWriter(path, header), pytest.raises(MeasurementError, match="another run is writing this journal"):
        run(SUITE, journal=path)
    assert run(SUITE, journal=path).complete


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(FAULTY_FOLDER)])
    registry._module_names.cache_clear()
    yield
    registry._module_names.cache_clear()


def test_a_crash_a_hang_and_a_refusal_become_rows_and_the_run_goes_on(
    faulty: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = KINDS.load("gemm")
    target = BACKENDS.load("faulty").targets("d")[0]
    trials = {}
    for fault in ("", "crash", "hang", "raise", "refuse", "allocate", "nan"):
        kernel = kind.kernel(kind.parameters(m=8, k=8, n=8, activation=fault, dtype="float32"))
        key = trial_key(target, kernel)
        trials[fault or "fine"] = KernelTrial(trial=key, target="faulty-t1", kernel=kernel, work=work_of(kernel))
    suite = Suite(name="faults", targets=("faulty-t1",), quality="quick")
    planned = Plan(suite=suite, targets=(target,), kernels=tuple(trials.values()), networks=(), models={})
    monkeypatch.setattr(runner, "plan", lambda *_, **__: planned)
    monkeypatch.setattr(runner, "protocol_named", lambda _: replace(QUICK, answer_limit_s=4.0))

    summary: RunSummary = run(suite, journal=tmp_path / "j.jsonl", command=COMMAND)

    assert summary.complete
    journal = read_journal(tmp_path / "j.jsonl")
    done = {fault: journal.done[trial.trial] for fault, trial in trials.items() if fault != "fine"}
    assert journal.measured == {trial.trial for trial in trials.values()}
    assert (done["crash"].status, done["crash"].reason) == ("failed", "killed by SIGSEGV")
    assert (done["hang"].status, done["hang"].reason) == ("failed", "no answer for 4 s")
    assert (done["raise"].status, done["raise"].reason) == ("failed", "ZeroDivisionError: in the kernel")
    assert (done["refuse"].status, done["refuse"].reason) == ("skipped", "no such kernel here")
    assert (done["allocate"].status, done["allocate"].reason) == ("failed", "MemoryError: ")
    assert done["nan"].status == "failed"
    assert done["nan"].reason == "its answer: NaN is not a number of JSON"
    rows = {row.kernel.params["activation"]: row for row in read_journal(tmp_path / "j.jsonl").measurements}
    assert rows["crash"].latency_hot_ns is None
    assert rows[""].latency_hot_ns == pytest.approx(50_000, rel=0.5)


def test_a_full_disk_is_one_sentence_and_the_journal_stays_readable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from opmark.bench.run import journal_writer as journal_module
    from opmark.core.errors import OpMarkError

    real, written = os.write, Counter[str]()

    def write(descriptor: int, content: bytes) -> int:
        written["bytes"] += len(content)
        if written["bytes"] > 4000:
            real(descriptor, bytes(content)[:10])
            raise OSError(28, "No space left on device")
        return real(descriptor, content)

    monkeypatch.setattr(journal_module.os, "write", write)
    with pytest.raises(OpMarkError, match="No space left on device"):
        run(SUITE, journal=tmp_path / "j.jsonl")
    monkeypatch.undo()
    for line in (tmp_path / "j.jsonl").read_text().splitlines():
        json.loads(line)
    assert run(SUITE, journal=tmp_path / "j.jsonl").complete
