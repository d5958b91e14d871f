"""Measure kernels for some time; print kernels per second, the division of the time, and the harness's memory.

    python benchmarks/throughput.py [--target onnxruntime-cpu-t1 …] [--seconds 60] [--quality full]

A look builds a kernel, warms it up, measures it in turns with the sentinels, and frees it. `hot and rotated` looks also
fill the cache before each call, or build up to 64 copies. The harness's memory is that of this process and its workers
while no kernel is built: right after a worker starts, and after a look. Pages shared between processes count once.
"""

import argparse
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opmark.bench.run.journal_writer import JournalWriter
from opmark.bench.run.runner import run
from opmark.bench.suite.suite import Prior, Suite
from opmark.bench.worker.pool import WorkerProcess
from opmark.core.measurements.journal import read_journal
from opmark.core.measurements.records import Record
from opmark.core.units import format_bytes, format_duration

PRIOR = ("mobilenet-v2", "vgg-small", "resnet-small", "squeeze-small", "bert-tiny", "decoder-small", "vit-tiny")
# The workers of a run: one for each of two targets.
_LASTING = 2


class Memory:
    """The memory of processes, from /proc; empty on systems without it."""

    def __init__(self) -> None:
        self.started: dict[int, int] = {}
        self.freed: dict[int, int] = {}
        self.peaks: dict[int, int] = {}

    def see(self, pid: int, request: Mapping[str, Any]) -> None:
        """Record a worker's memory after it answered `request`."""
        if request["do"] == "start":
            self.started[pid] = proportional_bytes(pid)
        else:
            self.peaks[pid] = peak_bytes(pid)
            self.freed[pid] = max(proportional_bytes(pid), self.freed.get(pid, 0))

    def lines(self) -> list[str]:
        """The results as three sentences."""
        mine = peak_bytes(os.getpid())
        empty = [max(self.started[pid], self.freed.get(pid, 0)) for pid in self.started]
        if not mine or not empty:
            return ["This system does not say what processes hold."]
        lasting = sum(sorted(empty, reverse=True)[:_LASTING])
        return [
            f"memory: {format_bytes(mine)} here at most; a worker without kernels {format_bytes(min(empty))} to "
            f"{format_bytes(max(empty))}, {format_bytes(max(self.started.values()))} at its start",
            f"the harness with {min(_LASTING, len(empty))} workers: {format_bytes(mine + lasting)}",
            f"a worker with its largest kernel: {format_bytes(max(self.peaks.values(), default=0))} at most",
        ]


def proportional_bytes(pid: int) -> int:
    """Resident bytes; shared pages are divided among the processes."""
    return _field(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")


def peak_bytes(pid: int) -> int:
    """The largest number of resident bytes so far."""
    return _field(Path(f"/proc/{pid}/status"), "VmHWM:")


def _field(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


class Ledger:
    """Seconds and requests by the type of request, and the other waits of this process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.requests: Counter[str] = Counter()
        self.memory = Memory()

    def watch(self) -> None:
        """Time all further requests."""
        ask, loaded, append, sleep = WorkerProcess.ask, WorkerProcess.loaded, JournalWriter.append, time.sleep

        def timed(worker: WorkerProcess, request: Mapping[str, Any]) -> dict[str, Any]:
            start = time.monotonic()
            try:
                return ask(worker, request)
            finally:
                self._add(self._name(request), start)
                self.memory.see(worker._process.pid, request)

        def waited(worker: WorkerProcess) -> None:
            start = time.monotonic()
            try:
                loaded(worker)
            finally:
                self._add("loading runtimes", start)

        def written(writer: JournalWriter, records: Iterable[Record]) -> None:
            start = time.monotonic()
            append(writer, records)
            self._add("journal", start)

        def slept(seconds: float) -> None:
            start = time.monotonic()
            sleep(seconds)
            self._add("waiting for calm", start)

        WorkerProcess.ask = timed  # type: ignore[method-assign]
        WorkerProcess.loaded = waited  # type: ignore[method-assign]
        JournalWriter.append = written  # type: ignore[method-assign]
        time.sleep = slept

    def _add(self, name: str, start: float) -> None:
        self.seconds[name] += time.monotonic() - start
        self.requests[name] += 1

    @staticmethod
    def _name(request: Mapping[str, Any]) -> str:
        if request["do"] != "kernel":
            return {"start": "starting workers"}.get(request["do"], str(request["do"]))
        return " and ".join(request["labels"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="a target; repeatable; default: onnxruntime-cpu-t1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--quality", default="full")
    options = parser.parse_args()
    targets = tuple(options.target or ["onnxruntime-cpu-t1"])
    suite = Suite(
        name="throughput",
        targets=targets,
        quality=options.quality,
        kernels=5000,
        at_least=60,
        prior=Prior(networks=PRIOR),
    )
    ledger = Ledger()
    ledger.watch()
    with tempfile.TemporaryDirectory() as folder:
        summary = run(suite, journal=Path(folder) / "journal.jsonl", budget_s=options.seconds)
        found = read_journal(Path(folder) / "journal.jsonl")
    rows = [row for row in found.measurements if row.samples]
    print(
        f"{summary.done} kernels on {', '.join(targets)} in {format_duration(summary.seconds)}: "
        f"{summary.done / summary.seconds:.2f} a second at {options.quality} quality; "
        + ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    )
    print(f"{sum(row.samples for row in rows) / max(1, len(rows)):.0f} hot samples a kernel")
    print(f"{'':20}{'seconds':>9}{'share':>8}{'requests':>10}{'each':>10}")
    rest = summary.seconds - sum(ledger.seconds.values())
    for name, seconds in sorted(ledger.seconds.items(), key=lambda item: -item[1]):
        count = ledger.requests[name]
        print(f"{name:20}{seconds:9.1f}{seconds / summary.seconds:8.1%}{count:10}{seconds / count * 1e3:7.1f} ms")
    print(f"{'deciding':20}{rest:9.1f}{rest / summary.seconds:8.1%}")
    for line in ledger.memory.lines():
        print(line)


if __name__ == "__main__":
    main()
