"""The process that executes the steps of one device: reads JSON requests, writes JSON answers, one line each.

Run it as `python -m opmark.bench.execution.worker`. Times are those of the system's monotonic clock, which all
processes of a machine share.
"""

import contextlib
import gc
import json
import os
import select
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, TextIO

from opmark.bench.clock.clock import Clock, machine_timer
from opmark.bench.clock.protocol import FULL
from opmark.bench.clock.scheduling import die_with_parent, fifo, limit_memory, may_use_fifo, prefer_as_victim
from opmark.bench.clock.turns import Part, reading_ns, sentinel_part
from opmark.bench.execution.programme import Crossing, DeviceStep
from opmark.bench.execution.shared_memory import mapped
from opmark.bench.worker.backend import BACKENDS
from opmark.bench.worker.divided import DividedNetwork, NamedKernel, NetworkPart
from opmark.bench.worker.sentinels import processor_sentinels
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError, OpMarkError
from opmark.core.hardware.target import Target

# A process that waits looks for a signal without sleeping for this long: waking up takes longer than most kernels.
_LOOK_NS = 2_000_000
_NUMBER_BYTES = 4
_now = time.perf_counter_ns


class StepWorker:
    """Executes on one device. Each public method answers the request of its name."""

    def __init__(self) -> None:
        self._network: DividedNetwork | None = None
        self._steps: tuple[DeviceStep, ...] = ()
        self._crossings: tuple[Crossing, ...] = ()
        self._own = 0
        self._inbox: dict[int, _Inbox] = {}
        self._outbox: dict[int, int] = {}
        self._patience_s = 0.0
        self._outputs: tuple[str, ...] = ()
        self._inputs: tuple[str, ...] = ()
        self._clock = Clock(timer=machine_timer(), protocol=FULL)
        self._sentinels: Mapping[str, Part] = {}

    @property
    def network(self) -> DividedNetwork:
        """The loaded network."""
        assert self._network is not None
        return self._network

    def load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Stay on the given cores, and load the network."""
        if request["cores"] and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, set(request["cores"]))
        target = Target(**{**request["target"], "options": tuple(request["target"]["options"])})
        backend = BACKENDS.load(target.backend)
        backend.start(target)
        self._network = backend.divided(request["model"], target, dimensions=request["dimensions"])
        self._inputs = tuple(request["inputs"])
        self._network.adopt([NamedKernel(**kernel) for kernel in _tuples(request["kernels"])], request["inputs"])
        if backend.device() is None:
            self._sentinels = {
                name: sentinel_part(item.call, self._clock.warm_up(item.call))
                for name, item in processor_sentinels().items()
            }
        return {}

    def sense(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Read the sentinels, from the moment `at_ns` on; a GPU has none.

        Each is read once, as beside a measured kernel: a second reading would find its lines in the caches again, and
        the readings at the state of labels are those of first ones.
        """
        with _burst(allowed=True):
            _stay_awake_until(request["at_ns"])
            return {"readings": {name: reading_ns(self._clock, part) for name, part in self._sentinels.items()}}

    def example(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write example inputs to a file."""
        _save(request["path"], self.network.example())
        return {}

    def survey(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the undivided network, write its outputs to a file, and describe the tensors inside it."""
        found = self.network.survey(_load(request["feeds"]), request["tensors"])
        _save(request["path"], found.outputs)
        gc.collect()
        return {"tensors": {name: plain(one) for name, one in found.tensors.items()}}

    def sizes(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The bytes of tensors."""
        return {"bytes": {name: self.network.size_bytes(name) for name in request["tensors"]}}

    def divide(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Build the steps of this device."""
        self._own = request["device"]
        self._steps = tuple(
            DeviceStep(**{name: tuple(value) for name, value in step.items()}) for step in request["work"]["steps"]
        )
        self._crossings = tuple(Crossing(**crossing) for crossing in request["crossings"])
        self._outputs = tuple(request["work"]["outputs"])
        self._patience_s = request["patience_s"]
        self._inbox = {source: _Inbox(end, self._patience_s) for source, end in request["inbox"]}
        self._outbox = dict(request["outbox"])
        memory: Any = mapped(request["descriptor"], request["shared_bytes"]) if request["shared_bytes"] else None
        shared = {}
        for one in self._crossings:
            if self._own in (one.source, one.destination):
                name = one.tensor if one.source == self._own else one.received_as
                shared[name] = memory[one.offset : one.offset + one.size_bytes]
        feeds = dict(zip(self._inputs, _load(request["feeds"]), strict=True))
        self.network.divide(
            [self._part(step) for step in self._steps],
            shared,
            {name: feeds[name] for name in request["work"]["feeds"]},
        )
        # A collection between two executions must not go through all modules.
        gc.collect()
        gc.freeze()
        return {}

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute every step, from the moment `at_ns` on."""
        at_ns = request["at_ns"]
        with _burst(allowed=request["burst"]):
            _stay_awake_until(at_ns)
            spans = [self._step(number) for number in range(len(self._steps))]
        gc.collect()
        return {"spans": spans}

    def run_alone(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Execute every step when its turn comes, so that one device works at a time.

        `turns` has, for each step, the source and number of the signal to wait for, and the destination and number of
        the one to give, or None. The other devices stay awake, as they do in a usual execution.
        """
        spans = []
        with _burst(allowed=request["burst"]):
            _stay_awake_until(request["at_ns"])
            for number, (wait, give) in enumerate(request["turns"]):
                if wait is not None:
                    self._inbox[wait[0]].wait_for(wait[1])
                spans.append(self._step(number))
                if give is not None:
                    os.write(self._outbox[give[0]], give[1].to_bytes(_NUMBER_BYTES, "little"))
        gc.collect()
        return {"spans": spans}

    def outputs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Write the graph outputs to a file."""
        _save(request["path"], [self.network.value(name) for name in self._outputs])
        return {}

    def _part(self, step: DeviceStep) -> NetworkPart:
        return NetworkPart(
            kernels=step.kernels,
            receives=tuple(self._crossings[number].received_as for number in step.receives),
            sends=tuple(dict.fromkeys(self._crossings[number].tensor for number in step.sends)),
        )

    def _step(self, number: int) -> dict[str, Any]:
        """Receive, run, send; the times of each."""
        network, step = self.network, self._steps[number]
        received, sent = [], []
        for one in step.receives:
            crossing = self._crossings[one]
            from_ns = _now()
            self._inbox[crossing.source].wait_for(one)
            arrived_ns = _now()
            network.accept(crossing.received_as)
            received.append((one, from_ns, arrived_ns, _now()))
        start_ns = _now()
        network.run(number)
        end_ns = _now()
        published: set[str] = set()
        for one in step.sends:
            crossing = self._crossings[one]
            # A receiver of the same bytes may be reading them already.
            if crossing.tensor not in published:
                network.publish(crossing.tensor)
                published.add(crossing.tensor)
            os.write(self._outbox[crossing.destination], one.to_bytes(_NUMBER_BYTES, "little"))
            sent.append((one, _now()))
        return {"received": received, "run": (start_ns, end_ns), "sent": sent}


class _Inbox:
    """The signals of one other device: numbers of crossings whose bytes are in the shared memory."""

    def __init__(self, end: int, patience_s: float) -> None:
        os.set_blocking(end, False)
        self._end = end
        self._patience_s = patience_s
        self._here: set[int] = set()
        self._poll = select.poll()
        self._poll.register(end, select.POLLIN)

    def wait_for(self, number: int) -> None:
        """Wait for the signal. Raises `MeasurementError` if it does not come."""
        if number in self._here:
            self._here.remove(number)
            return
        start_ns = _now()
        while True:
            try:
                message = os.read(self._end, 4096)
            except BlockingIOError:
                waited_ns = _now() - start_ns
                if waited_ns < _LOOK_NS:
                    continue
                left_s = self._patience_s - waited_ns / 1e9
                if left_s <= 0 or not self._poll.poll(1000 * left_s):
                    raise MeasurementError(f"nothing arrived from another device for {self._patience_s:g} s") from None
                continue
            places = range(0, len(message), _NUMBER_BYTES)
            self._here.update(int.from_bytes(message[at : at + _NUMBER_BYTES], "little") for at in places)
            if number in self._here:
                self._here.remove(number)
                return


def _stay_awake_until(at_ns: int) -> None:
    while _now() < at_ns:
        pass


def _burst(*, allowed: bool) -> AbstractContextManager[object]:
    """Real-time priority, if the system and the length of the work allow it."""
    return fifo() if allowed and may_use_fifo() else contextlib.nullcontext()


def _tuples(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**kernel, "inputs": tuple(kernel["inputs"]), "outputs": tuple(kernel["outputs"])} for kernel in kernels]


def _save(path: str, arrays: Any) -> None:
    import numpy as np

    with open(path, "wb") as stream:  # noqa: PTH123 (a path of the parent's own temporary folder)
        np.savez(stream, *arrays)


def _load(path: str) -> list[Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as found:
        return [found[name] for name in sorted(found.files, key=lambda name: int(name.rpartition("_")[2]))]


def serve(requests: TextIO, answers: TextIO, worker: StepWorker) -> None:
    """Answer every request until the input ends."""
    for line in requests:
        request = json.loads(line)  # of the process that started this one; settings of a protocol may be infinite
        try:
            answer = getattr(worker, request["do"])(request)
        except OpMarkError as error:
            answer = {"failed": str(error)}
        # A runtime may raise any error; it becomes one sentence.
        except Exception as error:  # noqa: BLE001
            answer = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Serve on standard input and output; other output of libraries goes to standard error."""
    die_with_parent()
    prefer_as_victim()
    limit_memory()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    gc.disable()
    serve(sys.stdin, answers, StepWorker())


if __name__ == "__main__":
    main()
