"""The worker processes of a run: started when needed, replaced when lost, restarted now and then."""

from collections.abc import Callable, Sequence

from opmark.bench.backend import BACKENDS
from opmark.bench.environment import Caches
from opmark.bench.process import COMMAND, WorkerProcess
from opmark.bench.protocol import Protocol
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

    def worker(self, target: Target, process: int) -> WorkerProcess:
        """The worker with that number. Raises `MeasurementError` where it cannot start."""
        key = (target.name, process)
        if key not in self._workers:
            backend = BACKENDS.load(target.backend)
            worker = WorkerProcess(target, backend, self._protocol, self._caches, command=self._command)
            self._workers[key] = worker
            self._started(target, process, worker)
        return self._workers[key]

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
        while self._workers:
            _, worker = self._workers.popitem()
            worker.stop()
