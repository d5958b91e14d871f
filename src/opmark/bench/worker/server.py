"""The measuring process: reads JSON requests and writes JSON answers, one line each.

Run it as `python -m opmark.bench.worker.server`. A kernel that fails here does not stop the run.
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

from opmark.bench.clock.clock import Clock, Timer, machine_timer
from opmark.bench.clock.protocol import MeasuringProtocol, protocol_from
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
from opmark.bench.worker.backend import BACKENDS, Bench, KernelTiming, NetworkTiming
from opmark.bench.worker.host_timing import HostKernelTiming, HostNetworkTiming
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.errors import OpMarkError
from opmark.core.hardware.target import Target
from opmark.core.kernels.kernel import Kernel
from opmark.core.measurements.estimate import label
from opmark.core.measurements.records import ROTATED


class Worker:
    """Measures on one target. Each public method answers the request of its name."""

    def __init__(self, request: dict[str, Any]) -> None:
        target = Target(**{**request["target"], "options": tuple(request["target"]["options"])})
        protocol = protocol_from(request["protocol"])
        backend = BACKENDS.load(target.backend)
        backend.start(target)
        own = backend.timer()
        timer = own or machine_timer()
        # The machine cannot disturb a backend's own clock: no priority and no waiting.
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
        self._kernels: dict[str, KernelTiming] = {}
        self._networks: dict[str, NetworkTiming] = {}

    def started(self) -> dict[str, Any]:
        """Answer the request that created this worker."""
        return {"overhead_ns": self._bench.overhead_ns}

    def kernel(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure one block of a kernel, hot or rotated."""
        timing = self._kernels.get(request["trial"])
        if timing is None:
            bench = self._bench
            kernel = Kernel.of(request["kernel"]["kind"], request["kernel"]["parameters"])
            timing = bench.backend.kernel_timing(kernel, bench) or HostKernelTiming(kernel, bench)
            self._kernels[request["trial"]] = timing
        return timing.rotated() if request["label"] == ROTATED else timing.hot()

    def network(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure one block of a whole network."""
        timing = self._networks.get(request["trial"])
        if timing is None:
            bench, model, dimensions = self._bench, request["model"], request["dimensions"]
            own = bench.backend.network_timing(model, dimensions, bench)
            timing = self._networks[request["trial"]] = own or HostNetworkTiming(model, dimensions, bench)
        return timing.block()

    def sentinel(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Measure the latency of both sentinels."""
        clock = self._bench.clock
        count = clock.protocol.sentinel_samples
        return {
            name: label(
                clock.take(item.call, latency_ns=self._sentinel_ns[name], samples=count, limit_s=5.0).clean_or_all,
                clock.protocol.label_quantile,
            )
            for name, item in self._sentinels.items()
        }

    def close(self, request: dict[str, Any]) -> dict[str, Any]:
        """Free the named trials."""
        for key in request["trials"]:
            timing = self._kernels.pop(key, None) or self._networks.pop(key, None)
            if timing is not None:
                timing.close()
        gc.collect()
        return {}


def serve(requests: TextIO, answers: TextIO, make: type[Worker] = Worker) -> None:
    """Answer every request with a worker that `make` creates, until the input ends."""
    worker: Worker | None = None
    for line in requests:
        request = json.loads(line)
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


def _settle(protocol: MeasuringProtocol, timer: Timer, latency_ns: float) -> str:
    """Wait for a quiet machine before samples that are long enough to be interrupted; return the scheduling."""
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
