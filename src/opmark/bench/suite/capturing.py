"""Capturing the graphs of a suite: most of the time of planning, minutes where none is cached.

Graphs do not depend on each other. Where several are missing, processes capture them side by side first.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from opmark.bench.clock.machine import processors
from opmark.bench.clock.scheduling import die_with_parent
from opmark.bench.suite.suite import NetworkSpec
from opmark.core.errors import OpMarkError
from opmark.core.reading import parse_json
from opmark.models.graphs.shipped import graphs_folder, needs_no_capture
from opmark.models.resolve import default_cache, graph_of, graph_origin, is_captured, onnx_file

# A process takes some seconds to import torch: fewer graphs are captured sooner by the process that plans.
_FEWEST = 8
# Each process holds a network.
_MOST_PROCESSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """Graphs that are `done` of `total`; `left_s` is estimated from the pace so far, None before the first one."""

    done: int
    total: int
    left_s: float | None
    doing: str


PlanListener = Callable[[PlanProgress], None]


def nobody(_now: PlanProgress) -> None:
    """Listen to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A graph that a plan needs; with `exports`, the target loads an ONNX file made of the network as well."""

    spec: NetworkSpec
    target: str
    exports: bool = False


class CaptureCount:
    """Counts the graphs of all targets, and tells a listener about the next one before its capture, from any thread."""

    def __init__(self, listener: PlanListener) -> None:
        self._listener = listener
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._done = 0
        self.total = 0

    def capturing(self, network: str, target: str) -> None:
        """Tell that the graph of `network` comes next; all earlier ones are done."""
        with self._lock:
            self._tell(f"capturing {network} for {target}")
            self._done += 1

    def drawing(self, target: str) -> None:
        """Tell that the kernels of a target are drawn."""
        self._tell(f"drawing kernels for {target}")

    def _tell(self, doing: str) -> None:
        total = max(self.total, self._done)
        spent_s = time.monotonic() - self._begun
        left_s = spent_s * (total - self._done) / self._done if self._done else None
        self._listener(PlanProgress(done=self._done, total=total, left_s=left_s, doing=doing))


def capture_ahead(
    needs: Sequence[Capture], cache: Path | None, listener: PlanListener, *, fewest: int = _FEWEST
) -> None:
    """Capture the missing graphs of `needs` into `cache`, side by side in as many processes as there are processors.

    A process takes at least `fewest` graphs. A graph that cannot be captured stays missing: planning meets its error in
    the order of the suite.
    """
    folder = cache or default_cache()
    missing = [need for need in needs if not _is_captured(need, folder)]
    count = min(processors(), _MOST_PROCESSES, len(missing) // fewest)
    if count < 2:
        return
    progress = CaptureCount(listener)
    progress.total = len(missing)
    left = deque(missing)
    # A process is told its captures by a thread of its own, which waits for each answer.
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_process(folder)) for _ in range(count)]
        threads = [threading.Thread(target=_feed, args=(process, left, progress), daemon=True) for process in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def _process(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that captures into `folder`. It has a group of its own, so that Ctrl-C reaches the planner alone."""
    process = subprocess.Popen(
        (sys.executable, "-m", __name__, str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _feed(process: "subprocess.Popen[bytes]", left: deque[Capture], progress: CaptureCount) -> None:
    """Give one capture after another to `process`, until none is left or the process has died."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        try:
            need = left.popleft()
        except IndexError:
            return
        progress.capturing(need.spec.model, need.target)
        line = json.dumps([need.spec.model, need.target, dict(need.spec.dimensions), need.exports])
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return
        if not process.stdout.readline():
            return


def _is_captured(need: Capture, folder: Path) -> bool:
    model, dimensions = need.spec.model, need.spec.dimensions
    try:
        if is_captured(model, need.target, cache=folder, dimensions=dimensions):
            return True
        # A shipped graph comes without the ONNX file.
        return not need.exports and needs_no_capture(
            graph_origin(model, need.target, dimensions=dimensions), graphs_folder()
        )
    except OpMarkError:
        return True  # planning tells the error


def serve(folder: Path, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Capture what each line of `requests` names, and answer with an empty line when it is done."""
    for line in requests:
        model, target, dimensions, exports = parse_json(line, "capture", written_by_us=True)
        with contextlib.suppress(OpMarkError):
            graph_of(model, target, cache=folder, dimensions=dimensions)
            if exports:
                onnx_file(model, cache=folder, dimensions=dimensions)
        answers.write(b"\n")
        answers.flush()


if __name__ == "__main__":
    die_with_parent()
    # Libraries print to standard output; the answers keep it for themselves.
    kept = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(Path(sys.argv[1]), sys.stdin.buffer, kept)
