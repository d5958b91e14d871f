"""The process that measures: JSON requests in, JSON answers out, one line each.

Run as `python -m opmark.bench.worker.server`. Whatever happens to a kernel here, the run goes on without it.
"""

import contextlib
import dataclasses
import functools
import gc
import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TextIO

from opmark.bench.clock.clock import Clock
from opmark.bench.clock.protocol import Protocol
from opmark.bench.clock.scheduling import (
    CONTENDED,
    FIFO,
    NORMAL,
    cpu_pressure,
    die_with_parent,
    fifo,
    limit_memory,
    may_use_fifo,
    prefer_as_victim,
)
from opmark.bench.clock.timer import Timer, machine_timer
from opmark.bench.worker.backend import BACKENDS, NetworkBlocks, Trial
from opmark.bench.worker.host_timing import Bench, clean_or_all
from opmark.bench.worker.messages import protocol_from, target_from
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.errors import OpMarkError
from opmark.core.estimate import label
from opmark.core.kernel import Kernel


class Worker:
    """Measures on one target until its input ends."""

    def __init__(self, request: dict[str, Any]) -> None:
        target = target_from(request["target"])
        protocol = protocol_from(request["protocol"])
        backend = BACKENDS.load(target.backend)
        backend.start(target)
        own = backend.timer()
        timer = own or machine_timer()
        # Nothing in the machine can disturb a backend's own clock: no priority, no waiting.
        real_time = own is None and may_use_fifo()
        burst: Callable[[], AbstractContextManager[object]] = fifo if real_time else contextlib.nullcontext
        scheduling = FIFO if real_time else NORMAL
        bench = Bench(
            backend=backend,
            target=target,
            clock=Clock(timer=timer, protocol=protocol, burst=burst),
            settle=(lambda _: scheduling) if real_time or own else functools.partial(_settle, protocol, timer),
            level2_bytes=request["level2_bytes"],
            last_level_bytes=request["last_level_bytes"],
            building=burst if target.threads > 1 else contextlib.nullcontext,
        )
        self._bench = dataclasses.replace(bench, overhead_ns=bench.measure_overhead())
        self._sentinels = backend.sentinels() or processor_sentinels()
        self._sentinel_ns = {name: bench.clock.warm_up(item.call) for name, item in self._sentinels.items()}
        self._kernels: dict[str, Trial] = {}
        self._networks: dict[str, NetworkBlocks] = {}

    def started(self) -> dict[str, Any]:
        """The answer to the request that made this worker."""
        return {"overhead_ns": self._bench.overhead_ns}

    def kernel(self, request: dict[str, Any]) -> dict[str, Any]:
        """One block of a kernel, hot or rotated."""
        trial = self._kernels.get(request["trial"])
        if trial is None:
            kernel = Kernel.of(request["kernel"]["kind"], request["kernel"]["parameters"])
            trial = self._kernels[request["trial"]] = self._bench.backend.kernel_trial(kernel, self._bench)
        return trial.rotated() if request["label"] == "rotated" else trial.hot()

    def network(self, request: dict[str, Any]) -> dict[str, Any]:
        """One block of a whole network."""
        trial = self._networks.get(request["trial"])
        if trial is None:
            trial = self._bench.backend.network_trial(request["model"], request["dimensions"], self._bench)
            self._networks[request["trial"]] = trial
        return trial.block()

    def sentinel(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Both sentinels' latencies now."""
        clock = self._bench.clock
        count = clock.protocol.sentinel_samples
        return {
            name: label(
                clean_or_all(clock.take(item.call, latency_ns=self._sentinel_ns[name], samples=count, limit_s=5.0)),
                clock.protocol.label_quantile,
            )
            for name, item in self._sentinels.items()
        }

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget the trials named."""
        for key in request["trials"]:
            trial = self._kernels.pop(key, None) or self._networks.pop(key, None)
            if trial is not None:
                trial.close()
        gc.collect()
        return {}


def serve(requests: TextIO, answers: TextIO, make: type[Worker] = Worker) -> None:
    """Answer every request until there are no more; `make` is what answers them."""
    worker: Worker | None = None
    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "load":
                # To ask a runtime whether it is there means to import it: most of what a start takes.
                BACKENDS.load(request["backend"]).unavailable()
                answer = {}
            elif request["do"] == "start":
                worker = make(request)
                answer = worker.started()
            else:
                answer = getattr(worker, request["do"])(request)
        except OpMarkError as error:
            answer = {"skipped": str(error)}
        # The boundary of the measuring worker: a runtime may raise anything, and the row then says what.
        except Exception as error:  # noqa: BLE001
            answer = {"failed": _sentence(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def _settle(protocol: Protocol, timer: Timer, latency_ns: float) -> str:
    """Without priority, wait a while for a quiet machine before samples that an interruption would surely hit."""
    if latency_ns < protocol.gate_above_ns:
        return NORMAL
    waited_s = 0.0
    while waited_s < protocol.gate_limit_s:
        pressure = cpu_pressure()
        if pressure is None or pressure < protocol.gate_pressure:
            return NORMAL
        timer.sleep(0.5)
        waited_s += 0.5
    return CONTENDED


def main(make: type[Worker] = Worker) -> None:
    """Serve on standard input and output; whatever else a library prints goes to standard error."""
    die_with_parent()
    prefer_as_victim()
    limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gc.disable()
    serve(sys.stdin, answers, make)


if __name__ == "__main__":
    main()
