"""Compare the effect of a busy core on the results of different tools for the same kernels.

Twelve kernels under 2 ms of five kinds run on ONNX Runtime and on eager torch, alternately with and without one busy
core. OpMark's label (the 10th percentile of clean samples) is compared with the mean, median and minimum of single
calls, ONNX Runtime's own profiler and `torch.utils.benchmark`.

    python benchmarks/noise.py [--rounds 10] [--same-core] [--json]
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opmark.bench.backends._onnx.model import stack
from opmark.bench.clock.machine import caches, device_slug
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.scheduling import may_use_fifo
from opmark.bench.run.runner import block_of
from opmark.bench.worker.backend import SINGLE, target_named
from opmark.bench.worker.pool import WorkerProcess
from opmark.core.canonical import plain
from opmark.core.kernels.folding import look_of
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.estimate import median
from opmark.core.measurements.labelling import labels_of
from opmark.core.measurements.looks import STATES
from opmark.core.measurements.records import HOT, Block
from opmark.core.units import format_ns
from opmark.kinds import KINDS, kind_of

TARGETS = ("onnxruntime-cpu-t1", "torch-eager-t1")
CALLS = 20
TORCH_SECONDS = 0.05
PROFILER, TORCH = "onnxruntime profiler", "torch.utils.benchmark"
ESTIMATORS = ("label", "mean", "median", "minimum", PROFILER, TORCH)
QUIET, LOADED = "quiet", "loaded"

# The load that keeps a core and its caches busy.
BUSY = "import numpy as np\nblock = np.ones(1 << 20)\nwhile True:\n    block *= 1.0000001\n"


def kernels() -> dict[str, Kernel]:
    """Twelve kernels of five kinds that both runtimes can run."""

    def of(kind: str, **parameters: Any) -> Kernel:
        family = KINDS.load(kind)
        return family.kernel(family.parameters(**parameters))

    def conv(channels: int, size: int, side: int, groups: int = 1) -> Kernel:
        pad = (side // 2,) * 4
        return of(
            "conv", batch=1, channels_in=channels, channels_out=channels, size=(size, size), kernel=(side, side),
            stride=(1, 1), pads=pad, dilation=(1, 1), groups=groups,
        )  # fmt: skip

    def elementwise(op: str, *shape: int) -> Kernel:
        return of("elementwise", op=op, shapes=(shape, shape) if op == "add" else (shape,))

    return {
        "gemm 64×256×256": of("gemm", m=64, k=256, n=256),
        "gemm 128×512×512": of("gemm", m=128, k=512, n=512),
        "gemm 1×1024×1000": of("gemm", m=1, k=1024, n=1000),
        "conv 3×3 32×28²": conv(32, 28, 3),
        "conv 1×1 128×14²": conv(128, 14, 1),
        "conv 3×3 depthwise 96×28²": conv(96, 28, 3, groups=96),
        "softmax 8×64×64": of("softmax", shape=(8, 64, 64), axis=2),
        "softmax 12×128×128": of("softmax", shape=(12, 128, 128), axis=2),
        "layer norm 128×256": of("norm", op="layer", shape=(128, 256), axis=1),
        "layer norm 128×768": of("norm", op="layer", shape=(128, 768), axis=1),
        "add 64×56²": elementwise("add", 1, 64, 56, 56),
        "gelu 128×1024": elementwise("gelu", 1, 128, 1024),
    }


class Load:
    """A process that keeps `core` busy while it is running."""

    def __init__(self, core: int) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", BUSY])
        with contextlib.suppress(AttributeError, OSError):
            os.sched_setaffinity(self._process.pid, {core})
        time.sleep(1.0)
        self.pause()

    def pause(self) -> None:
        """Pause the load."""
        self._process.send_signal(signal.SIGSTOP)

    def go(self) -> None:
        """Resume the load, and wait until caches and clocks adapt."""
        self._process.send_signal(signal.SIGCONT)
        time.sleep(0.02)

    def end(self) -> None:
        """End the load."""
        self._process.kill()
        self._process.wait()


class Labels:
    """OpMark's label of one kernel, measured in blocks by a separate worker."""

    def __init__(self, worker: WorkerProcess, kernel: Kernel) -> None:
        self._worker = worker
        self._request = {
            "do": "kernel",
            "labels": [HOT],
            "kernel": {"kind": kernel.kind, "parameters": plain(kernel.params)},
        }
        self._blocks: dict[str, list[Block]] = defaultdict(list)

    def take(self, condition: str, number: int) -> None:
        """Measure one block."""
        answer = self._worker.ask(self._request)
        if "blocks" not in answer:
            raise SystemExit(f"cannot measure {self._request['kernel']}: {answer}")
        (fields,) = answer["blocks"]
        self._blocks[condition].append(block_of(fields, "k", 0, number))

    def values(self) -> dict[str, float]:
        """The label under each load, told at the state that is usual without one."""
        quiet = self._blocks[QUIET]
        usual = {name: median([ns for block in quiet for ns in block.sentinels[name]]) for name in STATES}
        looks = {
            condition: [look_of(block, usual, None, self._worker.overhead_ns) for block in blocks]
            for condition, blocks in self._blocks.items()
        }
        return {condition: found.latency_ns for condition, found in labels_of(looks).items()}

    def close(self) -> None:
        """Nothing to free: every look frees its kernel."""


class Calls:
    """Single calls timed in this process, as in a simple script."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        for _ in range(5):
            call()
        self._ns: dict[str, list[float]] = defaultdict(list)

    def take(self, condition: str, _number: int) -> None:
        """Time a few calls."""
        for _ in range(CALLS):
            start = time.perf_counter_ns()
            self._call()
            self._ns[condition].append(float(time.perf_counter_ns() - start))

    def values(self, estimator: Callable[[Sequence[float]], float]) -> dict[str, float]:
        """One value under each load."""
        return {condition: estimator(times) for condition, times in self._ns.items()}


class TorchBenchmark:
    """The median that `torch.utils.benchmark` reports."""

    def __init__(self, call: Callable[[], object]) -> None:
        from torch.utils.benchmark import Timer

        self._timer = Timer(stmt="call()", globals={"call": call}, num_threads=1)
        self._medians: dict[str, list[float]] = defaultdict(list)

    def take(self, condition: str, _number: int) -> None:
        """Take one autoranged measurement."""
        self._medians[condition].append(self._timer.blocked_autorange(min_run_time=TORCH_SECONDS).median * 1e9)

    def values(self) -> dict[str, float]:
        """The median of its medians under each load."""
        return {condition: statistics.median(values) for condition, values in self._medians.items()}


class Profiler:
    """The mean kernel time recorded by ONNX Runtime's profiler."""

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        import onnxruntime

        kind = kind_of(kernel)
        node = kind.to_onnx(kind.parse(kernel))
        assert node is not None
        stacked = stack(node, copies=1, chain=False, rotated=False)
        self._feeds = stacked.feeds
        self._sessions = {}
        for condition in (QUIET, LOADED):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.enable_profiling = True
            options.profile_file_prefix = str(folder / f"{kernel.key}-{condition}")
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            if stacked.constants:
                values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in stacked.constants.values()]
                options.add_external_initializers(list(stacked.constants), values)
            self._sessions[condition] = onnxruntime.InferenceSession(
                stacked.model, options, providers=["CPUExecutionProvider"]
            )

    def take(self, condition: str, _number: int) -> None:
        """Profile a few runs."""
        for _ in range(CALLS):
            self._sessions[condition].run(None, self._feeds)

    def values(self) -> dict[str, float]:
        """The mean under each load, without the first runs."""
        found = {}
        for condition, session in self._sessions.items():
            events = json.loads(Path(session.end_profiling()).read_text())
            times = [item["dur"] * 1e3 for item in events if str(item.get("name", "")).endswith("_kernel_time")]
            found[condition] = statistics.mean(times[5:])
        return found


@dataclass(frozen=True)
class Row:
    """A kernel on a target: its label without load, and the change of each tool's value under load."""

    target: str
    kernel: str
    label_ns: float
    moved: Mapping[str, float]


def measured(target_name: str, name: str, kernel: Kernel, load: Load, rounds: int, worker: WorkerProcess) -> Row:
    """Run all tools in turn, without and with load."""
    backend, target = target_named(target_name, device_slug())
    prepared = backend.prepare(kernel, target, copies=1, construction=SINGLE, rotated=False)
    labels, calls = Labels(worker, kernel), Calls(prepared.call)
    with tempfile.TemporaryDirectory() as folder:
        other: Profiler | TorchBenchmark
        if target_name.startswith("torch"):
            other, other_name = TorchBenchmark(prepared.call), TORCH
        else:
            other, other_name = Profiler(kernel, Path(folder)), PROFILER
        # The build and the first samples are not counted.
        labels.take("warm", 0)
        for number in range(rounds):
            for condition in (QUIET, LOADED):
                with busy(load, condition):
                    for tool in (labels, calls, other):
                        tool.take(condition, number)
        figures = {
            "label": labels.values(),
            "mean": calls.values(statistics.mean),
            "median": calls.values(statistics.median),
            "minimum": calls.values(min),
            other_name: other.values(),
        }
    labels.close()
    prepared.close()
    moved = {tool: found[LOADED] / found[QUIET] - 1 for tool, found in figures.items()}
    return Row(target=target_name, kernel=name, label_ns=figures["label"][QUIET], moved=moved)


@contextlib.contextmanager
def busy(load: Load, condition: str) -> Iterator[None]:
    """Turn the load on or off."""
    if condition == LOADED:
        load.go()
    try:
        yield
    finally:
        load.pause()


def show(rows: Sequence[Row]) -> None:
    """Print the table, with the median and the largest change of every tool."""
    print(f"{'target':<20}{'kernel':<28}{'label':>10}" + "".join(f"{tool:>23}" for tool in ESTIMATORS))
    for row in rows:
        moved = "".join(f"{row.moved[tool]:>+23.1%}" if tool in row.moved else f"{'':>23}" for tool in ESTIMATORS)
        print(f"{row.target:<20}{row.kernel:<28}{format_ns(row.label_ns):>10}{moved}")
    for what, pick in (("median of |move|", statistics.median), ("largest |move|", max)):
        cells = (pick([abs(row.moved[tool]) for row in rows if tool in row.moved]) for tool in ESTIMATORS)
        print(f"{what:<58}" + "".join(f"{cell:>23.1%}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="rounds without and with load (default: 10)")
    parser.add_argument("--same-core", action="store_true", help="measure on the busy core")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if arguments.same_core:
        os.sched_setaffinity(0, {cores[-1]})
    import torch

    torch.set_num_threads(1)
    load = Load(cores[-1])
    rows = []
    try:
        for target_name in TARGETS:
            backend, target = target_named(target_name, device_slug())
            backend.start(target)
            worker = WorkerProcess(target, backend, FULL, caches())
            try:
                for name, kernel in kernels().items():
                    rows.append(measured(target_name, name, kernel, load, arguments.rounds, worker))
                    print(f"{target_name} {name}", file=sys.stderr)
            finally:
                worker.stop()
    finally:
        load.end()
    if arguments.json:
        facts = {"fifo": may_use_fifo(), "same_core": arguments.same_core, "cores": len(cores)}
        print(json.dumps({**facts, "rows": [vars(row) for row in rows]}, indent=2))
    else:
        where = "the measuring core" if arguments.same_core else f"core {cores[-1]} of {len(cores)}"
        priority = "permitted" if may_use_fifo() else "not permitted"
        print(f"Changes under a busy {where}; real-time priority {priority}; {arguments.rounds} rounds.\n")
        show(rows)


if __name__ == "__main__":
    main()
