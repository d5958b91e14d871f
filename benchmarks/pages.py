"""Measure how much a label depends on the memory pages of its process: the same work in several new processes.

The first rows are the memory sentinel's copy of 4 MiB on small and on huge pages. The others are kernels whose tensors
are about as large as a core's own cache, measured as in a suite. Decision 0010 in docs/decisions quotes the results.

    python benchmarks/pages.py [--processes 8] [--target onnxruntime-cpu-t1]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence

from opmark.bench.clock.machine import caches, device_slug
from opmark.bench.clock.protocol import FULL
from opmark.bench.run.runner import block_of
from opmark.bench.worker.backend import target_named
from opmark.bench.worker.pool import WorkerProcess
from opmark.core.canonical import plain
from opmark.core.kernels.folding import look_of
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.estimate import half_width, label, variation
from opmark.core.units import format_ns
from opmark.kinds import KINDS

# Looks at a kernel in each process.
_LOOKS = 5
# One process: copies of 4 MiB on pages of one size, 200 samples, each long enough for the clock.
COPY = """
import contextlib, json, mmap, sys, time
import numpy as np
from opmark.bench.clock.scheduling import fifo, may_use_fifo
bytes_, huge = 4 << 20, 2 << 20
def array():
    memory = mmap.mmap(-1, bytes_ + huge)
    memory.madvise(mmap.MADV_HUGEPAGE if sys.argv[1] == "huge" else mmap.MADV_NOHUGEPAGE)
    whole = np.frombuffer(memory, dtype=np.uint8)
    start = -whole.ctypes.data % huge
    part = whole[start : start + bytes_].view(np.float32)
    part[:] = 1
    return part
source, out = array(), array()
burst = fifo if may_use_fifo() else contextlib.nullcontext
samples = []
for _ in range(20):
    with burst():
        for _ in range(3):
            np.copyto(out, source)
        for _ in range(10):
            start = time.perf_counter_ns()
            for _ in range(5):
                np.copyto(out, source)
            samples.append((time.perf_counter_ns() - start) / 5)
    time.sleep(0.005)
print(json.dumps(samples))
"""


def copies(pages: str, processes: int) -> list[float]:
    """The label of the copy in each of `processes` processes, in ns."""
    found = []
    for _ in range(processes):
        done = subprocess.run([sys.executable, "-c", COPY, pages], capture_output=True, check=True)
        found.append(label(json.loads(done.stdout)))
    return found


def kernels() -> dict[str, Kernel]:
    """Kernels whose tensors fill a level-2 cache, and one much smaller kernel."""

    def of(kind: str, **parameters: object) -> Kernel:
        family = KINDS.load(kind)
        return family.kernel(family.parameters(**parameters))

    def depthwise(channels: int, side: int) -> Kernel:
        return of(
            "conv", batch=1, channels_in=channels, channels_out=channels, size=(side, side), kernel=(3, 3),
            stride=(1, 1), pads=(1, 1, 1, 1), dilation=(1, 1), groups=channels,
        )  # fmt: skip

    return {
        "depthwise 3×3 64×64²": depthwise(64, 64),
        "depthwise 3×3 144×56²": depthwise(144, 56),
        "add 128×56²": of("elementwise", op="add", shapes=((1, 128, 56, 56), (1, 128, 56, 56))),
        "gemm 64×256×256": of("gemm", m=64, k=256, n=256),
    }


def labels(target_name: str, kernel: Kernel, processes: int) -> tuple[list[float], list[float]]:
    """A kernel's label in each of several new workers, and the relative half-width of each label's interval."""
    backend, target = target_named(target_name, device_slug())
    request = {
        "do": "kernel",
        "labels": ["hot"],
        "kernel": {"kind": kernel.kind, "parameters": plain(kernel.params)},
    }
    found, sure = [], []
    for _ in range(processes):
        worker = WorkerProcess(target, backend, backend.adapt(FULL), caches())
        try:
            times: list[float] = []
            for number in range(_LOOKS):
                (fields,) = worker.ask(request)["blocks"]
                times += look_of(block_of(fields, "k", 0, number), {}, None, worker.overhead_ns).ns
        finally:
            worker.stop()
        found.append(label(times))
        sure.append(half_width(times))
    return found, sure


def line(name: str, values: Sequence[float], surest: float | None = None) -> str:
    """A row of the table: the spread between processes, and the half-width within one process."""
    own = "" if surest is None else f"{surest:8.1%}"
    return f"{name:26}{variation(values) or 0:9.1%}{own:>10}   " + ", ".join(format_ns(ns) for ns in values)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--target", default="onnxruntime-cpu-t1")
    options = parser.parse_args()
    print(f"{'':26}{'spread':>9}{'each to':>10}   in {options.processes} processes")
    for pages, name in (("small", "copy 4 MiB, 4 KiB pages"), ("huge", "copy 4 MiB, 2 MiB pages")):
        print(line(name, copies(pages, options.processes)))
    for name, kernel in kernels().items():
        found, sure = labels(options.target, kernel, options.processes)
        print(line(name, found, sorted(sure)[len(sure) // 2]))


if __name__ == "__main__":
    main()
