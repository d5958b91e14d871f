"""A worker process as its run sees it: started, asked, and buried when it crashes or hangs."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from opmark.bench.clock.machine import Caches
from opmark.bench.clock.protocol import Protocol
from opmark.bench.worker.backend import Backend
from opmark.bench.worker.messages import protocol_content
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError
from opmark.core.target import Target

COMMAND = (sys.executable, "-m", "opmark.bench.worker.server")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerLostError(MeasurementError):
    """The worker crashed, hung or was killed."""


class WorkerProcess:
    """One worker on one target. Raises `MeasurementError` where the target cannot start.

    Without `begin` it only loads its runtime, which several may do at once; `loaded` waits for that, and `begin` makes
    it ready to measure.
    """

    def __init__(
        self,
        target: Target,
        backend: Backend,
        protocol: Protocol,
        caches: Caches,
        *,
        command: Sequence[str] = COMMAND,
        begin: bool = True,
    ) -> None:
        threads = dict.fromkeys(_THREAD_VARIABLES, str(target.threads))
        self._limit_s = protocol.answer_limit_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `stop`)
        self._buffer = b""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **threads, **backend.environment_variables(target)},
            # Ctrl-C is for the run, which lets the block in progress finish.
            start_new_session=True,
        )
        self._target = target
        self._start = {
            "do": "start",
            "target": plain(target),
            "protocol": protocol_content(protocol),
            "level2_bytes": caches.level2_bytes,
            "last_level_bytes": caches.last_level_bytes,
        }
        self.overhead_ns = 0.0
        if begin:
            self.begin()
        else:
            self._tell({"do": "load", "backend": target.backend})

    def loaded(self) -> None:
        """Wait until its runtime is there. Raises `WorkerLostError` when it never will be."""
        self._answer()

    def begin(self) -> None:
        """Let it measure what an empty call costs. Raises `MeasurementError` where the target cannot start."""
        answer = self.ask(self._start)
        reason = answer.get("skipped") or answer.get("failed")
        if reason is not None:
            self.stop()
            raise MeasurementError(f"cannot measure on {self._target.name}: {reason}")
        self.overhead_ns = float(answer["overhead_ns"])

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `request`. Raises `WorkerLostError` when there is none."""
        self._tell(request)
        return self._answer()

    def _tell(self, request: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        # One that died says so by giving no answer.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        line = self._read_line()
        if not line:
            raise WorkerLostError(self._bury())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End the process, politely first."""
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

    def _read_line(self) -> bytes:
        """One line, waiting without spinning; empty when the worker died. Raises `WorkerLostError` when it hangs."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(self._limit_s):
                    self._process.kill()
                    self._bury()
                    raise WorkerLostError(f"no answer for {self._limit_s:g} s")
                received = os.read(descriptor, 1 << 16)
                if not received:
                    return b""
                self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _bury(self) -> str:
        """What the process died of."""
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        self.stop()
        if code < 0:
            name = signal.Signals(-code).name
            return f"killed by {name}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")
        return f"exited with code {code}" + (f": {said[-1][:200]}" if said else "")
