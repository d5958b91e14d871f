"""The processes of an execution as their parent sees them: one per device, started, asked and ended together."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from opmark.bench.execution.programme import Programme
from opmark.bench.execution.shared_memory import SharedMemory
from opmark.bench.worker.backend import BACKENDS, available_target
from opmark.bench.worker.divided import Fingerprint, NamedKernel
from opmark.core.canonical import plain
from opmark.core.errors import MeasurementError, UnavailableError
from opmark.core.hardware.target import Target
from opmark.core.line_reader import LineReader
from opmark.core.reading import parse_json
from opmark.core.units import counted

COMMAND = (sys.executable, "-m", "opmark.bench.execution.worker")
# Exporting and optimising a large network takes minutes.
_LOAD_LIMIT_S = 900.0
# Workers have this long to get ready before a common start.
_HEAD_START_NS = 5_000_000
# The sentinels of one worker are read within this time.
_READING_NS = 2_000_000
# Signals with these numbers pass on the turn; smaller ones are crossings.
_FIRST_TURN = 1 << 30
# A real-time process may not occupy its core for longer.
_BURST_NS = 400_000_000
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A device of this machine: the target that runs on it, and its processor cores."""

    name: str
    target: Target
    cores: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """The times of one step, in ns of the machine's clock.

    `received` are (crossing, wait began, signal came, copy ended), `sent` are (crossing, signal given).
    """

    received: tuple[tuple[int, int, int, int], ...]
    run: tuple[int, int]
    sent: tuple[tuple[int, int], ...]

    @property
    def end_ns(self) -> int:
        """The end of its kernels, or its last signal."""
        return max((self.run[1], *(at for _, at in self.sent)))

    @property
    def work_ns(self) -> int:
        """The time from the beginning of its kernels to its last signal: kernels, and handing over what they made."""
        return self.end_ns - self.run[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution: its common start, and the times of every step of every device."""

    start_ns: int
    devices: tuple[tuple[StepTimes, ...], ...]

    @property
    def busy_ns(self) -> tuple[int, ...]:
        """The time inside the steps of each device, without waiting."""
        return tuple(sum(step.run[1] - step.run[0] for step in steps) for steps in self.devices)

    @property
    def end_ns(self) -> int:
        """The end of the last step."""
        return max(step.end_ns for steps in self.devices for step in steps)

    @property
    def makespan_ns(self) -> int:
        """From the common start to the end of the last step."""
        return self.end_ns - self.start_ns


def seats(devices: Sequence[tuple[str, str]], cores: Sequence[int] | None = None) -> tuple[Seat, ...]:
    """A seat for every device, given as (name, target name). `cores` are the usable cores, by default all.

    Raises `UnavailableError` if this machine lacks a runtime, a GPU or cores.
    """
    free = sorted(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    free = list(free if cores is None else cores)
    available = len(free)
    found, needed, gpus = [], 0, 0
    for name, target_name in devices:
        try:
            backend, target = available_target(target_name)
        except UnavailableError as error:
            raise UnavailableError(f"this machine lacks device {name!r}: {error.message}", hint=error.hint) from error
        gpus += backend.device() is not None
        needed += target.threads
        own, free = free[: target.threads], free[target.threads :]
        found.append(Seat(name=name, target=target, cores=tuple(own)))
    if gpus > 1:
        raise UnavailableError("placements are executed on one GPU at most")
    if needed > available:
        raise UnavailableError(
            f"the devices of this cluster need {counted(needed, 'processor core')}, and this machine has {available}"
        )
    return tuple(found)


class Crew:
    """One worker per seat; leaving the `with` block ends all of them.

    Every method raises `MeasurementError` if a worker fails, dies or gives no answer; then all of them are ended.
    """

    def __init__(self, taken: Sequence[Seat], *, patience_s: float = 30.0, command: Sequence[str] = COMMAND) -> None:
        self.seats = tuple(taken)
        self._patience_s = patience_s
        self._folder = tempfile.TemporaryDirectory(prefix="opmark-")
        self._memory = SharedMemory(len(taken))
        self._members: list[_Member] = []
        self._programme: Programme | None = None
        self.feeds = str(Path(self._folder.name) / "feeds.npz")
        try:
            for seat in taken:
                self._members.append(_Member(seat, command, self._memory.descriptors))
        except OSError as error:
            self.close()
            raise MeasurementError(f"a worker cannot be started: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The workers' process ids."""
        return tuple(member.process.pid for member in self._members)

    def load(
        self,
        model: str,
        dimensions: Mapping[str, int],
        graphs: Sequence[tuple[Sequence[NamedKernel], Sequence[str]]],
        *,
        host: int = 0,
    ) -> None:
        """Load the network in every worker, and write the example inputs of the host.

        `graphs` are the kernels and inputs that the captured graph of each seat has.
        """
        for number, (seat, (kernels, inputs)) in enumerate(zip(self.seats, graphs, strict=True)):
            request = {
                "do": "load",
                "target": plain(seat.target),
                "model": model,
                "dimensions": dict(dimensions),
                "cores": seat.cores,
                "kernels": plain(list(kernels)),
                "inputs": list(inputs),
            }
            # One after the other: the first one makes the files that the others find in the cache.
            self._ask({number: request}, _LOAD_LIMIT_S)
        self._ask({host: {"do": "example", "path": self.feeds}}, _LOAD_LIMIT_S)

    def survey(self, device: int, tensors: Sequence[str]) -> tuple[list[Any], dict[str, Fingerprint]]:
        """Run the undivided network on one device: its outputs, and the fingerprints of `tensors` and of its inputs."""
        path = str(Path(self._folder.name) / f"outputs{device}.npz")
        request = {"do": "survey", "feeds": self.feeds, "tensors": list(tensors), "path": path}
        answer = self._ask({device: request}, _LOAD_LIMIT_S)[device]
        prints = {
            name: Fingerprint(dtype=one["dtype"], elements=one["elements"], numbers=tuple(one["numbers"]))
            for name, one in answer["tensors"].items()
        }
        return arrays_in(path), prints

    def sizes(self, device: int, tensors: Sequence[str]) -> dict[str, int]:
        """The bytes of tensors on one device."""
        found: dict[str, int] = self._ask({device: {"do": "sizes", "tensors": list(tensors)}}, self._patience_s)[
            device
        ]["bytes"]
        return found

    def divide(self, programme: Programme) -> None:
        """Let every worker build its steps. Raises `MeasurementError` if its transfers do not fit into memory."""
        self._memory.reserve(programme.shared_bytes)
        self._programme = programme
        crossings = plain(programme.crossings)
        requests = {
            number: {
                "do": "divide",
                "device": number,
                "work": plain(work),
                "crossings": crossings,
                "descriptor": self._memory.descriptor,
                "shared_bytes": programme.shared_bytes,
                "feeds": self.feeds,
                "patience_s": self._patience_s,
                "inbox": [(a, ends[0]) for (a, b), ends in self._memory.pipes.items() if b == number],
                "outbox": [(b, ends[1]) for (a, b), ends in self._memory.pipes.items() if a == number],
            }
            for number, work in enumerate(programme.devices)
        }
        self._ask(requests, _LOAD_LIMIT_S)

    def run(self, expected_ns: float) -> Execution:
        """Execute once on all devices, which is expected to take about `expected_ns`."""
        start_ns = time.perf_counter_ns() + _HEAD_START_NS
        request = {"do": "run", "at_ns": start_ns, "burst": expected_ns < _BURST_NS}
        answers = self._ask(dict.fromkeys(range(len(self._members)), request), self._limit_s(expected_ns))
        devices = tuple(
            tuple(_step_times(span) for span in answers[number]["spans"]) for number in range(len(self._members))
        )
        return Execution(start_ns=start_ns, devices=devices)

    def sense(self) -> tuple[Mapping[str, float], ...]:
        """The readings of every seat's sentinels in ns, by name; one seat reads while the others are awake."""
        start_ns = time.perf_counter_ns() + _HEAD_START_NS
        requests = {
            number: {"do": "sense", "at_ns": start_ns + number * _READING_NS} for number in range(len(self._members))
        }
        answers = self._ask(requests, self._patience_s)
        return tuple(answers[number]["readings"] for number in range(len(self._members)))

    def run_alone(self, order: Sequence[tuple[int, int]], expected_ns: float) -> dict[tuple[int, int], StepTimes]:
        """Execute once, step by step in `order` (device, step), so that only one device works at a time."""
        turns: list[list[Any]] = [[] for _ in self._members]
        for place, (device, _) in enumerate(order):
            wait = give = None
            if place and order[place - 1][0] != device:
                wait = (order[place - 1][0], _FIRST_TURN + place)
            if place + 1 < len(order) and order[place + 1][0] != device:
                give = (order[place + 1][0], _FIRST_TURN + place + 1)
            turns[device].append((wait, give))
        common = {"do": "run_alone", "at_ns": time.perf_counter_ns() + _HEAD_START_NS, "burst": expected_ns < _BURST_NS}
        answers = self._ask(
            {number: {**common, "turns": own} for number, own in enumerate(turns)}, self._limit_s(expected_ns)
        )
        spans = {number: [_step_times(span) for span in answer["spans"]] for number, answer in answers.items()}
        return {(device, step): spans[device][step] for device, step in order}

    def outputs(self, device: int) -> list[Any]:
        """The graph outputs after the last execution, on the device that ends with them."""
        path = str(Path(self._folder.name) / "executed.npz")
        self._ask({device: {"do": "outputs", "path": path}}, self._patience_s)
        return arrays_in(path)

    def close(self) -> None:
        """End every worker, dead or alive, and free the memory."""
        for member in self._members:
            member.end()
        self._members.clear()
        self._memory.close()
        self._folder.cleanup()

    def _limit_s(self, expected_ns: float) -> float:
        return self._patience_s + 20 * expected_ns / 1e9

    def _ask(self, requests: Mapping[int, Mapping[str, Any]], limit_s: float) -> dict[int, dict[str, Any]]:
        """The answers of several workers, which work at the same time; the first failure ends the crew."""
        answers: dict[int, dict[str, Any]] = {}
        until = time.monotonic() + limit_s
        try:
            with selectors.DefaultSelector() as selector:
                for number, request in requests.items():
                    self._members[number].send(request)
                    selector.register(self._members[number].stream, selectors.EVENT_READ, number)
                while len(answers) < len(requests):
                    ready = selector.select(max(0.0, until - time.monotonic()))
                    if not ready:
                        late = next(self._members[number] for number in requests if number not in answers)
                        raise MeasurementError(
                            f"the worker of device {late.seat.name!r} gave no answer in {limit_s:g} s"
                        )
                    for key, _ in ready:
                        answers[key.data] = self._members[key.data].answer(until)
                        selector.unregister(key.fileobj)
        except BaseException:
            for member in self._members:
                member.end()
            raise
        return answers


class _Member:
    """One worker process."""

    def __init__(self, seat: Seat, command: Sequence[str], descriptors: Sequence[int]) -> None:
        self.seat = seat
        backend = BACKENDS.load(seat.target.backend)
        threads = dict.fromkeys(_THREADS, str(seat.target.threads))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `end`)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **threads, **backend.environment_variables(seat.target)},
                pass_fds=tuple(descriptors),
                # Ctrl-C is for the parent, which ends its workers.
                start_new_session=True,
            )
        except OSError:
            self._errors.close()
            raise
        assert self.process.stdout is not None
        self.stream = self.process.stdout
        self._answers = LineReader(self.stream)

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request; if the worker has died, the missing answer shows it."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, until: float) -> dict[str, Any]:
        """The answer. Raises `MeasurementError` for a failure or a dead worker."""
        line = self._answers.read(max(1.0, until - time.monotonic()))
        if not line:
            raise MeasurementError(f"the worker of device {self.seat.name!r} {self._reason()}")
        answer: dict[str, Any] = parse_json(line, f"the worker of device {self.seat.name!r}")
        if "failed" in answer:
            raise MeasurementError(f"device {self.seat.name!r}: {answer['failed']}")
        return answer

    def end(self) -> None:
        """Kill the process if it is alive, and close its pipes."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()

    def _reason(self) -> str:
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "hangs"
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        if code < 0:
            name = signal.Signals(-code).name
            return f"was killed by {name}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")
        return f"exited with code {code}" + (f": {said[-1][:200]}" if said else "")


def arrays_in(path: str) -> list[Any]:
    """The arrays of a file that a worker wrote, in order."""
    with np.load(path, allow_pickle=False) as found:
        return [found[name] for name in sorted(found.files, key=lambda name: int(name.rpartition("_")[2]))]


def _step_times(span: Mapping[str, Any]) -> StepTimes:
    return StepTimes(
        received=tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in span["received"]),
        run=(int(span["run"][0]), int(span["run"][1])),
        sent=tuple((int(a), int(b)) for a, b in span["sent"]),
    )
