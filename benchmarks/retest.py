"""Measure the same kernels twice in new processes while another process keeps one core busy.

Prints the differences between the two runs for OpMark's label, and for the mean and the median of 100 single calls in
one process, which most tools report.

    python benchmarks/retest.py [--kernels 50] [--target onnxruntime-cpu-t1] [--quality full] [--no-load]
"""

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from opmark.bench.clock.machine import device_slug
from opmark.bench.run.runner import run
from opmark.bench.suite.plan import plan
from opmark.bench.suite.suite import KindSpec, Suite
from opmark.bench.worker.backend import SINGLE, target_named
from opmark.core.errors import OpMarkError
from opmark.core.measurements.estimate import quantile
from opmark.core.measurements.journal import read_journal
from opmark.core.units import format_duration, format_ns

KINDS = ("conv", "gemm", "matmul", "softmax", "elementwise", "norm", "pool", "reduce", "movement", "gather")
CALLS = 100


def suite_of(target: str, kernels: int, quality: str) -> Suite:
    """`kernels` kernels of ten kinds, the same ones in every run."""
    counts = {kind: KindSpec(count=kernels // len(KINDS)) for kind in KINDS}
    return Suite(name="retest", targets=(target,), quality=quality, kinds=counts)


def measured(suite: Suite, folder: Path, name: str) -> dict[str, float]:
    """OpMark's label of every kernel, from new processes."""
    journal = folder / f"{name}.jsonl"
    run(suite, journal=journal)
    rows = read_journal(journal).measurements
    return {row.kernel.key: row.latency_hot_ns for row in rows if row.latency_hot_ns is not None}


def plain(suite: Suite) -> dict[str, list[float]]:
    """`CALLS` single calls of every kernel, one after the other, as in a simple script."""
    found = {}
    backend, target = target_named(suite.targets[0], device_slug())
    backend.start(target)
    for trial in plan(suite).kernels:
        try:
            prepared = backend.prepare(trial.kernel, target, copies=1, construction=SINGLE, rotated=False)
        except OpMarkError:
            continue
        for _ in range(5):
            prepared.call()
        times = []
        for _ in range(CALLS):
            start = time.perf_counter_ns()
            prepared.call()
            times.append(float(time.perf_counter_ns() - start))
        prepared.close()
        found[trial.kernel.key] = times
    return found


def plain_in_fresh_process(arguments: Sequence[str]) -> dict[str, list[float]]:
    """The result of `plain` in a separate process."""
    command = [sys.executable, __file__, *arguments, "--plain"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)  # type: ignore[no-any-return]


def busy() -> None:
    """Keep one core and its caches busy."""
    import numpy as np

    block = np.ones(1 << 20)
    while True:
        block = block * 1.0000001


def differences(first: dict[str, float], second: dict[str, float]) -> list[float]:
    """The difference between each kernel's two values, as a fraction of their mean."""
    return [2 * abs(first[key] - second[key]) / (first[key] + second[key]) for key in first if key in second]


def main() -> None:
    """Measure twice, both ways, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=50)
    parser.add_argument("--target", default="onnxruntime-cpu-t1")
    parser.add_argument("--quality", default="full")
    parser.add_argument("--no-load", action="store_true", help="measure without the busy core")
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    suite = suite_of(options.target, options.kernels, options.quality)
    if options.plain:
        print(json.dumps(plain(suite)))
        return
    load = multiprocessing.get_context("spawn").Process(target=busy, daemon=True)
    if not options.no_load:
        load.start()
    try:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            labels = [measured(suite, Path(folder), name) for name in ("first", "second")]
        took = time.monotonic() - start
        again = ["--kernels", str(options.kernels), "--target", options.target, "--quality", options.quality]
        samples = [plain_in_fresh_process(again) for _ in range(2)]
    finally:
        if load.is_alive():
            load.kill()
    rows = {"clean 10th percentile (OpMark)": differences(*labels)}
    for name, statistic in (("median of 100", statistics.median), ("mean of 100", statistics.fmean)):
        rows[name] = differences(*({key: statistic(times) for key, times in found.items()} for found in samples))
    kernels = {trial.kernel.key: trial.kernel for trial in plan(suite).kernels}
    print(f"{len(labels[0])} of {len(kernels)} kernels on {options.target}, twice, {format_duration(took)} for both")
    print(f"{'difference of two runs':32}{'median':>9}{'90 %':>9}{'largest':>9}")
    for name, values in rows.items():
        cells = (quantile(values, 0.5), quantile(values, 0.9), max(values))
        print(f"{name:32}" + "".join(f"{cell:9.1%}" for cell in cells))
    first, second = labels
    both = sorted(first.keys() & second.keys(), key=lambda key: -abs(first[key] - second[key]) / first[key])
    print("largest differences of OpMark's labels:")
    for key in both[:3]:
        print(f"  {format_ns(first[key]):>9} {format_ns(second[key]):>9}  {kernels[key]}")


if __name__ == "__main__":
    main()
