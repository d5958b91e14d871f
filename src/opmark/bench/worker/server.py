"""The measuring process: reads JSON requests and writes JSON answers, one line each.

Run it as `python -m opmark.bench.worker.server`. A kernel that fails here does not stop the run.
"""

import contextlib
import dataclasses
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TextIO

from opmark.bench.clock.clock import Clock, machine_timer
from opmark.bench.clock.protocol import protocol_from
from opmark.bench.clock.scheduling import (
    CONTENDED,
    FIFO,
    NORMAL,
    cpu_pressure,
    die_with_parent,
    fifo,
    limit_memory,
    may_use_fifo,
    pin,
    prefer_as_victim,
)
from opmark.bench.clock.turns import sentinel_part
from opmark.bench.worker.backend import BACKENDS, Bench
from opmark.bench.worker.host_timing import HostKernelTiming, HostNetworkTiming
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.errors import OpMarkError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.records import ROTATED

_PAUSE_S = 0.5
_LONG_COLLECTION_NS = 2_000_000


class Worker:
    """Measures on one target. Each public method answers the request of its name."""

    def __init__(self, request: dict[str, Any]) -> None:
        target = Target(**{**request["target"], "options": tuple(request["target"]["options"])})
        protocol = protocol_from(request["protocol"])
        backend = BACKENDS.load(target.backend)
        # before the runtime starts its threads, which inherit it
        pin(target.threads)
        backend.start(target)
        own = backend.timer()
        timer = own or machine_timer()
        self._timer = timer
        self._protocol = protocol
        # What the next look may wait for a calm machine, and what it has waited.
        self._patience_s = 0.0
        self._waited_s = 0.0
        # The machine cannot disturb a backend's own clock: no priority and no waiting.
        real_time = own is None and may_use_fifo()
        burst: Callable[[], AbstractContextManager[object]] = fifo if real_time else contextlib.nullcontext
        scheduling = FIFO if real_time else NORMAL
        bench = Bench(
            backend=backend,
            target=target,
            clock=Clock(timer=timer, protocol=protocol, burst=burst),
            settle=(lambda _: scheduling) if real_time or own else self._settle,
            level2_bytes=request["level2_bytes"],
            last_level_bytes=request["last_level_bytes"],
            building=burst if target.threads > 1 else contextlib.nullcontext,
        )
        # The device's own clock tells its state: its samples need no sentinels beside them.
        sentinels = {} if backend.device() else backend.sentinels() or processor_sentinels()
        self._bench = dataclasses.replace(
            bench,
            overhead_ns=bench.measure_overhead(),
            sentinels={
                name: sentinel_part(item.call, bench.clock.warm_up(item.call)) for name, item in sentinels.items()
            },
        )
        # A collection after every look must not go through all modules.
        gc.collect()
        gc.freeze()

    def started(self) -> dict[str, Any]:
        """Answer the request that created this worker."""
        return {"overhead_ns": self._bench.overhead_ns}

    def kernel(self, request: dict[str, Any]) -> dict[str, Any]:
        """Look at a kernel: one block per requested label, `hot` first."""
        kernel = Kernel.of(request["kernel"]["kind"], request["kernel"]["parameters"])
        self._patience_s = request.get("patience_s", 0.0)
        timing = self._bench.backend.kernel_timing(kernel, self._bench) or HostKernelTiming(kernel, self._bench)
        blocks = []
        try:
            blocks.append(timing.hot())
            if ROTATED in request["labels"]:
                blocks.append(timing.rotated())
        finally:
            timing.close()
        del timing
        return self._looked(blocks)

    def network(self, request: dict[str, Any]) -> dict[str, Any]:
        """Look at a whole network: one block."""
        model, dimensions = request["model"], request["dimensions"]
        self._patience_s = request.get("patience_s", 0.0)
        own = self._bench.backend.network_timing(model, dimensions, self._bench)
        timing = own or HostNetworkTiming(model, dimensions, self._bench)
        try:
            blocks = [timing.block()]
        finally:
            timing.close()
        del own, timing
        return self._looked(blocks)

    def _looked(self, blocks: list[dict[str, Any]]) -> dict[str, Any]:
        waited_s, self._waited_s = self._waited_s, 0.0
        # Automatic collections are switched off, so that none falls into a sample.
        begun_ns = time.perf_counter_ns()
        gc.collect()
        if time.perf_counter_ns() - begun_ns > _LONG_COLLECTION_NS:
            # Modules load with the first work that needs them, and stay: to go through them takes 5 to 150 ms.
            gc.freeze()
        return {"blocks": blocks, "waited_s": waited_s}

    def _settle(self, latency_ns: float) -> str:
        """Wait for a quiet machine before samples that are long enough to be interrupted; return the scheduling."""
        protocol = self._protocol
        if latency_ns < protocol.gate_above_ns:
            return NORMAL
        while True:
            pressure = cpu_pressure()
            if pressure is None or pressure < protocol.gate_pressure:
                return NORMAL
            pause_s = min(_PAUSE_S, self._patience_s - self._waited_s)
            if pause_s <= 0:
                return CONTENDED
            self._timer.sleep(pause_s)
            self._waited_s += pause_s


def serve(requests: TextIO, answers: TextIO, make: type[Worker] = Worker) -> None:
    """Answer every request with a worker that `make` creates, until the input ends."""
    worker: Worker | None = None
    for line in requests:
        request = json.loads(line)  # of the process that started this one; settings of a protocol may be infinite
        try:
            if request["do"] == "load":
                # This imports the runtime, which takes most of the time of a start.
                BACKENDS.load(request["backend"]).unavailable()
                answer = {}
            elif request["do"] == "start":
                worker = make(request)
                answer = worker.started()
            else:
                answer = getattr(worker, request["do"])(request)
        except OpMarkError as error:
            answer = {"skipped": str(error)}
        # A runtime may raise any error; it becomes the reason of a failed row.
        except Exception as error:  # noqa: BLE001
            answer = {"failed": _sentence(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def main(make: type[Worker] = Worker) -> None:
    """Serve on standard input and output; other output of libraries goes to standard error."""
    die_with_parent()
    prefer_as_victim()
    limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gc.disable()
    serve(sys.stdin, answers, make)


if __name__ == "__main__":
    main()
