"""The neighbour as a process on the last core: it runs and rests as a flag in shared memory says.

Run it as `python -m opmark.bench.corun.neighbour_process DESCRIPTOR`. It reads JSON requests and writes JSON answers,
one line each, while it rests.
"""

import contextlib
import gc
import json
import mmap
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from opmark.bench.clock.scheduling import die_with_parent, limit_memory, prefer_as_victim
from opmark.bench.corun.stressors import prepared_stressor, stressor_named
from opmark.bench.worker.backend import BACKENDS, SINGLE
from opmark.bench.worker.neighbour import NeighbourWork
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError, OpMarkError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.line_reader import LineReader
from opmark.core.reading import parse_json

_FLAGS_BYTES = 16
# The places of the two flags: what it shall do, and what it does.
_WANTED, _RUNNING = 0, 8
_PATIENCE_S = 30.0
# Loading a runtime takes long on a busy machine.
_START_S = 120.0
# Those of this process before it stays on the first of them.
_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
# A call that takes longer would not end soon after the flag falls.
_LONGEST_NS = 20_000_000
# It looks at its flag this often, and less often when it has not been wanted for a while.
_REST_S, _LONG_REST_S = 5e-5, 5e-3
_SOON = 10_000


class NeighbourProcess:
    """A process of `target` on the last processor core; this process stays on the first.

    Raises `UnavailableError` if there is only one core, `MeasurementError` if the process fails.
    """

    def __init__(self, target: Target) -> None:
        cores = _CORES
        if len(cores) < 2:
            raise UnavailableError("a neighbour needs a second processor core")
        with tempfile.TemporaryFile() as file:
            file.truncate(_FLAGS_BYTES)
            self._flags = mmap.mmap(file.fileno(), _FLAGS_BYTES)
            self._process = subprocess.Popen(
                (sys.executable, "-m", __name__, str(file.fileno()), str(cores[-1])),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(file.fileno(),),
            )
        assert self._process.stdout is not None
        self._answers = LineReader(self._process.stdout)
        os.sched_setaffinity(0, set(cores[:1]))
        try:
            self._ask({"do": "start", "target": plain(target)}, _START_S)
        except MeasurementError:
            self.close()
            raise

    def load(self, work: NeighbourWork) -> None:
        """Prepare `work`, which must not run."""
        self._ask({"do": "load", "work": work.content()})

    def go(self) -> None:
        """Raise the flag, and wait until the process runs."""
        self._set(1)

    def rest(self) -> None:
        """Lower the flag, and wait until the process rests."""
        self._set(0)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._flags.close()

    def _set(self, wanted: int) -> None:
        self._flags[_WANTED] = wanted
        end_ns = time.perf_counter_ns() + int(_PATIENCE_S * 1e9)
        while self._flags[_RUNNING] != wanted:
            if time.perf_counter_ns() > end_ns or self._process.poll() is not None:
                raise MeasurementError("the process on the other core does not answer")

    def _ask(self, request: dict[str, Any], limit_s: float = _PATIENCE_S) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        line = self._answers.read(limit_s)
        if not line:
            raise MeasurementError("the process on the other core is gone")
        answer = parse_json(line, "the process on the other core")
        if "failed" in answer:
            raise MeasurementError(f"on the other core: {answer['failed']}")


class _Served:
    """The other side: prepared work and its pauses."""

    def __init__(self) -> None:
        self._target: Target | None = None
        self.call: Callable[[], object] = lambda: None
        self.duty = 1.0
        self._close: Callable[[], object] = lambda: None

    def start(self, request: dict[str, Any]) -> None:
        target = Target(**{**request["target"], "options": tuple(request["target"]["options"])})
        BACKENDS.load(target.backend).start(target)
        self._target = target

    def load(self, request: dict[str, Any]) -> None:
        work = NeighbourWork.of(request["work"])
        self._close()
        self._close = lambda: None
        if work.kernel is None:
            stressor = stressor_named(work.stressor)
            self.call, self.duty = prepared_stressor(stressor), stressor.duty
        else:
            assert self._target is not None
            backend = BACKENDS.load(self._target.backend)
            prepared = backend.prepare(work.kernel, self._target, copies=1, construction=SINGLE, rotated=False)
            self.call, self.duty, self._close = prepared.call, 1.0, prepared.close
        self.call()
        begun = time.perf_counter_ns()
        self.call()
        if time.perf_counter_ns() - begun > _LONGEST_NS:
            raise MeasurementError("a call takes too long for a neighbour that must stop soon")


def serve(flags: mmap.mmap, served: _Served, answers: int) -> None:
    """Run while the flag is up, and answer requests while it is down, until the input ends."""
    now = time.perf_counter_ns
    rests = 0
    while True:
        if flags[_WANTED]:
            flags[_RUNNING] = 1
            rests = 0
            begun = now()
            served.call()
            if served.duty < 1:
                end = begun + (now() - begun) / served.duty
                while now() < end and flags[_WANTED]:
                    pass
            continue
        flags[_RUNNING] = 0
        rests += 1
        if not select.select([0], [], [], _REST_S if rests < _SOON else _LONG_REST_S)[0]:
            continue
        line = sys.stdin.readline()
        if not line:
            return
        request = parse_json(line.encode(), "a request")
        answer: dict[str, Any] = {}
        try:
            getattr(served, request["do"])(request)
        except OpMarkError as error:
            answer = {"failed": str(error)}
        # A runtime may raise any error; it becomes one sentence.
        except Exception as error:  # noqa: BLE001
            answer = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
        os.write(answers, json.dumps(answer).encode() + b"\n")


def main(descriptor: int, core: int) -> None:
    """Serve on standard input and output; other output of libraries goes to standard error."""
    die_with_parent()
    prefer_as_victim()
    limit_memory()
    os.sched_setaffinity(0, {core})
    answers = os.dup(1)
    os.dup2(2, 1)
    gc.disable()
    with mmap.mmap(descriptor, _FLAGS_BYTES) as flags:
        serve(flags, _Served(), answers)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
