"""Worker processes as a run sees them: start, ask, stop and replace them.

The workers that all trials on a target need load their runtime at the same time, on all cores, before anything is
measured.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opmark.bench.clock.machine import Caches
from opmark.bench.clock.protocol import MeasuringProtocol
from opmark.bench.worker.backend import BACKENDS, Backend
from opmark.core.canonical import plain
from opmark.core.errors import ContentError, MeasurementError
from opmark.core.hardware.target import Target
from opmark.core.line_reader import LineReader
from opmark.core.measurements.measurement import FAILED, SKIPPED
from opmark.core.reading import parse_json

COMMAND = (sys.executable, "-m", "opmark.bench.worker.server")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerLostError(MeasurementError):
    """The worker crashed, hung or was killed."""


class WorkerProcess:
    """One worker on one target. Raises `MeasurementError` if the target cannot start.

    Without `begin`, the worker only loads its runtime, which several workers may do at once. `loaded` waits for that,
    and `begin` makes the worker ready to measure.
    """

    def __init__(
        self,
        target: Target,
        backend: Backend,
        protocol: MeasuringProtocol,
        caches: Caches,
        *,
        command: Sequence[str] = COMMAND,
        begin: bool = True,
    ) -> None:
        threads = dict.fromkeys(_THREAD_VARIABLES, str(target.threads))
        self._limit_s = protocol.answer_limit_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `stop`)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **threads, **backend.environment_variables(target)},
            # Ctrl-C stops the run, which lets the current block finish.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._answers = LineReader(self._process.stdout)
        self._target = target
        self._start = {
            "do": "start",
            "target": plain(target),
            "protocol": plain(protocol),
            "level2_bytes": caches.level2_bytes,
            "last_level_bytes": caches.last_level_bytes,
        }
        self.overhead_ns = 0.0
        if begin:
            self.begin()
        else:
            self._send({"do": "load", "backend": target.backend})

    def loaded(self) -> None:
        """Wait until the runtime is loaded. Raises `WorkerLostError` if the worker dies."""
        self._answer()

    def begin(self) -> None:
        """Measure the overhead of an empty call. Raises `MeasurementError` if the target cannot start."""
        answer = self.ask(self._start)
        refused = refusal(answer)
        if refused is not None:
            self.stop()
            raise MeasurementError(f"cannot measure on {self._target.name}: {refused[1]}")
        self.overhead_ns = float(answer["overhead_ns"])

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `request`. Raises `WorkerLostError` if there is none."""
        self._send(request)
        return self._answer()

    def stop(self) -> None:
        """Close the pipes, and kill the process if it does not end by itself."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._errors.close()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        # If the worker has died, the missing answer shows it.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.read(self._limit_s)
        if line is None:
            self._process.kill()
            self._end()
            raise WorkerLostError(f"no answer for {self._limit_s:g} s")
        if not line:
            raise WorkerLostError(self._end())
        try:
            answer: dict[str, Any] = parse_json(line, "its answer")
        except ContentError as error:
            self._process.kill()
            self._end()
            raise WorkerLostError(str(error)) from error
        return answer

    def _end(self) -> str:
        """Wait for the process to end, and return the reason of its end."""
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self.stop()
        if code < 0:
            name = signal.Signals(-code).name
            return f"killed by {name}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")
        return f"exited with code {code}" + (f": {said[-1][:200]}" if said else "")


def refusal(answer: Mapping[str, Any]) -> tuple[str, str] | None:
    """The status and the reason in an answer without a measurement; None for any other answer."""
    return next(((status, str(answer[status])) for status in (SKIPPED, FAILED) if status in answer), None)


class WorkerPool:
    """One worker per target and process number. The pool calls `started` with every new worker."""

    def __init__(
        self,
        protocol: MeasuringProtocol,
        caches: Caches,
        started: Callable[[Target, int, WorkerProcess], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._protocol = protocol
        self._caches = caches
        self._started = started
        self._command = command
        self._workers: dict[tuple[str, int], WorkerProcess] = {}
        # Workers that have loaded their runtime and nothing else.
        self._waiting: dict[tuple[str, int], WorkerProcess] = {}

    def worker(self, target: Target, process: int) -> WorkerProcess:
        """The worker with that number. Raises `MeasurementError` if it cannot start."""
        key = (target.name, process)
        if key not in self._workers:
            if key not in self._waiting:
                self._load(target, process)
            # A worker that died while it waited is replaced by a new one, which reports its own failure.
            worker = _begun(self._waiting.pop(key, None)) or self._new(target)
            self._workers[key] = worker
            self._started(target, process, worker)
        return self._workers[key]

    def alive(self, target: Target) -> list[tuple[int, WorkerProcess]]:
        """The current workers on `target` with their numbers."""
        return [(process, worker) for (name, process), worker in self._workers.items() if name == target.name]

    def dismiss(self, target: Target, process: int) -> None:
        """Stop a worker, dead or alive; the next worker with its number is a new process."""
        worker = self._workers.pop((target.name, process), None)
        if worker is not None:
            worker.stop()

    def dismiss_all(self) -> None:
        """Stop every worker."""
        for workers in (self._workers, self._waiting):
            while workers:
                _, worker = workers.popitem()
                worker.stop()

    def _load(self, target: Target, process: int) -> None:
        """Let worker `process` load its runtime together with the workers that are needed soon."""
        numbers = {process, *(range(self._protocol.processes) if process < self._protocol.processes else ())}
        keys = [(target.name, number) for number in sorted(numbers)]
        new = [key for key in keys if key not in self._workers and key not in self._waiting]
        for key in new:
            self._waiting[key] = self._new(target, begin=False)
        for key in new:
            try:
                self._waiting[key].loaded()
            except WorkerLostError:
                del self._waiting[key]

    def _new(self, target: Target, *, begin: bool = True) -> WorkerProcess:
        backend = BACKENDS.load(target.backend)
        return WorkerProcess(target, backend, self._protocol, self._caches, command=self._command, begin=begin)


def _begun(worker: WorkerProcess | None) -> WorkerProcess | None:
    """`worker` ready to measure; None if it has died."""
    try:
        if worker is not None:
            worker.begin()
    except WorkerLostError:
        return None
    return worker
