"""Measure kernels for a while and print how many a second, and where the time goes.

    python benchmarks/throughput.py [--target onnxruntime-cpu-t1] [--seconds 60] [--quality full]

`first block` builds a kernel's models, warms them up and takes one block; `rotated` builds up to 64 copies of it.
"""

import argparse
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opmark.bench.process import WorkerProcess
from opmark.bench.runner import run
from opmark.bench.suite import Prior, Suite
from opmark.core.journal import read_journal
from opmark.core.units import format_duration

PRIOR = ("mobilenet-v2", "vgg-small", "resnet-small", "squeeze-small", "bert-tiny", "decoder-small", "vit-tiny")


class Ledger:
    """Seconds and requests by what a worker was asked for."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.requests: Counter[str] = Counter()
        self._seen: set[tuple[int, str]] = set()

    def watch(self) -> None:
        """Time every request from now on."""
        ask = WorkerProcess.ask

        def timed(worker: WorkerProcess, request: Mapping[str, Any]) -> dict[str, Any]:
            start = time.monotonic()
            try:
                return ask(worker, request)
            finally:
                name = self._name(worker, request)
                self.seconds[name] += time.monotonic() - start
                self.requests[name] += 1

        WorkerProcess.ask = timed  # type: ignore[method-assign]

    def _name(self, worker: WorkerProcess, request: Mapping[str, Any]) -> str:
        if request["do"] != "kernel":
            names = {"sentinel": "sentinels", "start": "starting workers", "close": "freeing"}
            return names.get(request["do"], str(request["do"]))
        key = (id(worker), request["trial"])
        if request["label"] == "rotated":
            return "rotated"
        if key in self._seen:
            return "further blocks"
        self._seen.add(key)
        return "first block"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="onnxruntime-cpu-t1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--quality", default="full")
    options = parser.parse_args()
    suite = Suite(
        name="throughput",
        targets=(options.target,),
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
        f"{summary.done} kernels on {options.target} in {format_duration(summary.seconds)}: "
        f"{summary.done / summary.seconds:.2f} a second at {options.quality} quality; "
        + ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    )
    print(f"{sum(row.samples for row in rows) / max(1, len(rows)):.0f} hot samples a kernel")
    print(f"{'':20}{'seconds':>9}{'share':>8}{'requests':>10}{'each':>10}")
    rest = summary.seconds - sum(ledger.seconds.values())
    for name, seconds in sorted(ledger.seconds.items(), key=lambda item: -item[1]):
        count = ledger.requests[name]
        print(f"{name:20}{seconds:9.1f}{seconds / summary.seconds:8.1%}{count:10}{seconds / count * 1e3:7.1f} ms")
    print(f"{'planning, journal':20}{rest:9.1f}{rest / summary.seconds:8.1%}")


if __name__ == "__main__":
    main()
