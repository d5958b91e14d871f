"""The worker processes of a run: started when needed, replaced when lost, restarted now and then.

Those that every trial on a target needs load their runtime together, on all cores, while nothing is measured.
"""

from collections.abc import Callable, Sequence

from opmark.bench.clock.machine import Caches
from opmark.bench.clock.protocol import Protocol
from opmark.bench.worker.backend import BACKENDS
from opmark.bench.worker.process import COMMAND, WorkerLostError, WorkerProcess
from opmark.core.target import Target


class Crew:
    """One worker per target and process number. `started` is told of every new one."""

    def __init__(
        self,
        protocol: Protocol,
        caches: Caches,
        started: Callable[[Target, int, WorkerProcess], None],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._protocol = protocol
        self._caches = caches
        self._started = started
        self._command = command
        self._workers: dict[tuple[str, int], WorkerProcess] = {}
        # Loaded, and not asked for anything yet.
        self._waiting: dict[tuple[str, int], WorkerProcess] = {}

    def worker(self, target: Target, process: int) -> WorkerProcess:
        """The worker with that number. Raises `MeasurementError` where it cannot start."""
        key = (target.name, process)
        if key not in self._workers:
            if key not in self._waiting:
                self._load(target, process)
            # One that died while it loaded or waited is replaced; a new one says why it cannot be.
            worker = _begun(self._waiting.pop(key, None)) or self._new(target)
            self._workers[key] = worker
            self._started(target, process, worker)
        return self._workers[key]

    def _load(self, target: Target, process: int) -> None:
        """Let worker `process` load its runtime, and with it the others that are needed soon."""
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

    def alive(self, target: Target) -> list[tuple[int, WorkerProcess]]:
        """The workers on `target` that exist now."""
        return [(process, worker) for (name, process), worker in self._workers.items() if name == target.name]

    def dismiss(self, target: Target, process: int) -> None:
        """Stop a worker, dead or alive; the next one with its number is a new process."""
        worker = self._workers.pop((target.name, process), None)
        if worker is not None:
            worker.stop()

    def dismiss_all(self) -> None:
        """Stop every worker."""
        for workers in (self._workers, self._waiting):
            while workers:
                _, worker = workers.popitem()
                worker.stop()


def _begun(worker: WorkerProcess | None) -> WorkerProcess | None:
    """`worker`, ready to measure; None where it is no more."""
    try:
        if worker is not None:
            worker.begin()
    except WorkerLostError:
        return None
    return worker
