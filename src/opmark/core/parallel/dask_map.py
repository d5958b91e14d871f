"""Tasks on a Dask cluster: the workers compute, and the client alone stores results.

Dask runs a task again elsewhere when its worker ends. Every task checks first that its worker has the client's code and
packages, so that a cluster gives the same bytes as one machine. Dask: Rocklin, "Dask: Parallel Computation with Blocked
algorithms and Task Scheduling", SciPy 2015.
"""

import hashlib
import pickle
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opmark.core.errors import MissingExtraError, OpMarkError, UnavailableError, UsageError
from opmark.core.parallel.task_map import Result, Shared, Task, TaskMap

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
CONNECTED_WITHIN_S = 30.0
WORKERS_WITHIN_S = 120.0
# Tasks that wait at the scheduler: enough for a cluster that grows with its load, and no more memory than that.
WAITING_AT_LEAST = 64
WAITING_PER_SLOT = 4
# A machine has fewer than a thousand processes to spare.
_DIGITS = 3
# Packages whose version can change a result.
_DECISIVE = ("numpy", "scipy", "numba", "lightgbm", "ortools")


class OnDask(TaskMap):
    """Tasks on the cluster at `address`: a scheduler (`tcp://host:8786`), or `local:4` for processes of this machine.

    Raises `UsageError` for another address, `MissingExtraError` without Dask, `UnavailableError` where no scheduler or
    no worker answers.
    """

    def __init__(self, address: str) -> None:
        self._local: Any = None
        self._address = address
        count = _local_workers(address)
        try:
            import distributed
        except ImportError as error:
            raise MissingExtraError("a cluster needs Dask", hint="pip install 'opmark[cluster]'") from error
        try:
            if count:
                self._local = _local_cluster(count)
            self.client: Client = distributed.Client(self._local or address, timeout=CONNECTED_WITHIN_S)
        except (OSError, TimeoutError) as error:
            self._end_local()
            raise UnavailableError(f"no scheduler answers at {address}", hint="is `dask scheduler` running?") from error
        try:
            self.client.wait_for_workers(count or 1, timeout=WORKERS_WITHIN_S)
        except TimeoutError as error:
            self.close()
            raise UnavailableError(
                f"the scheduler at {address} had no worker for {WORKERS_WITHIN_S:.0f} s",
                hint="start workers, for instance `dask worker ADDRESS --nthreads 1`",
            ) from error

    @property
    def slots(self) -> int:
        """The threads of all workers."""
        threads: dict[str, int] = self.client.nthreads()
        return max(1, sum(threads.values()))

    def run(
        self, function: Callable[[Shared, Task], Result], tasks: Sequence[Task], *, shared: Shared
    ) -> Generator[tuple[int, Result], None, None]:
        """Submit tasks as others end. A task whose workers ended is tried once more after all others, alone.

        Dask blames every task of a worker for its end. Raises `OpMarkError` after all other tasks where one was lost:
        every worker that tried it ended, also those that had nothing else to do.
        """
        blamed: list[int] = []
        yield from self._run_together(function, tasks, shared, blamed)
        lost: list[str] = []
        for number in blamed:
            future = self.submit(function, self._everywhere(shared), tasks[number])
            try:
                reason = self.lost(self.ended(future))
                if not reason:
                    yield number, future.result()
                    continue
                lost.append(reason)
            finally:
                self.client.cancel([future])
        if lost:
            raise OpMarkError(
                f"{len(lost)} of {len(tasks)} tasks were lost: {lost[0]}",
                hint="the other results are stored; run the same command again",
            )

    def _run_together(
        self, function: Callable[[Shared, Task], Result], tasks: Sequence[Task], shared: Shared, blamed: list[int]
    ) -> Generator[tuple[int, Result], None, None]:
        """The results as tasks end; the numbers of those without one, because their workers ended, go to `blamed`."""
        waiting = list(reversed(list(enumerate(tasks))))
        running: dict[Future, int] = {}
        common = self._everywhere(shared)
        pending = self._as_completed()
        try:
            while waiting or running:
                while waiting and len(running) < max(WAITING_AT_LEAST, WAITING_PER_SLOT * self.slots):
                    number, task = waiting.pop()
                    future = self.submit(function, common, task)
                    running[future] = number
                    pending.add(future)
                future = next(pending)
                number = running.pop(future)
                if self.lost(future):
                    blamed.append(number)
                    continue
                yield number, future.result()
        finally:
            self.client.cancel(list(running))

    def submit(
        self,
        function: Callable[[Any, Any], Any],
        common: Any,
        task: Any,
        *,
        resource: str = "",
        workers: Sequence[str] = (),
    ) -> "Future":
        """One task. `resource` is one that its worker must have; only `workers` may run it (none: all)."""
        with _large_tasks_allowed():
            return self.client.submit(
                _run_checked,
                identity(),
                function,
                common,
                task,
                pure=False,
                resources={resource: 1} if resource else None,
                workers=list(workers) or None,
            )

    def ended(self, future: "Future") -> "Future":
        """The same task, once it has ended."""
        from distributed import wait

        wait(future)
        return future

    def first_ended(self, futures: "Sequence[Future]", within_s: float) -> "list[Future]":
        """The tasks that have ended, after the first one did, or none after `within_s` seconds."""
        from distributed import wait

        try:
            return list(wait(list(futures), timeout=within_s, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []

    def resources(self) -> dict[str, frozenset[str]]:
        """The names of the resources of each worker, by its address."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: frozenset(facts["resources"]) for address, facts in workers.items()}

    def begun(self) -> set[str]:
        """The keys of all tasks that a worker has."""
        return {key for keys in self.client.processing().values() for key in keys}

    def grant(self, worker: str, resource: str) -> None:
        """Give one unit of a resource to the worker at an address."""
        self.client.run(_take_resource, resource, workers=[worker], on_error="ignore")

    def lost(self, future: "Future") -> str:
        """The reason why a task has no result because its workers ended; empty otherwise.

        Raises the task's own exception, or `UnavailableError` where it is none of OpMark's.
        """
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise UnavailableError(f"the scheduler at {self._address} is gone", hint="run the same command again")
        if future.status != "error":
            return ""
        error = future.exception()
        if isinstance(error, KilledWorker):
            return "every worker that tried it ended, perhaps out of memory"
        if isinstance(error, OpMarkError):
            raise error
        raise UnavailableError(
            f"a worker of {self._address} failed: {type(error).__name__}: {error}",
            hint="every worker needs this version of OpMark with the same packages",
        ) from error

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        self.client.close(timeout=CONNECTED_WITHIN_S)
        self._end_local()

    def _everywhere(self, shared: Any) -> Any:
        """The shared value as the result of a task, which Dask makes again when the worker that holds it ends."""
        if shared is None:
            return None
        with _large_tasks_allowed():
            return self.client.submit(pickle.loads, pickle.dumps(shared), pure=False)

    def _as_completed(self) -> Any:
        from distributed import as_completed

        return as_completed(loop=self.client.loop)

    def _end_local(self) -> None:
        if self._local is not None:
            self._local.close(timeout=CONNECTED_WITHIN_S)


def identity() -> dict[str, str]:
    """Everything here that can change a result: OpMark's code, and the versions of Python and of packages."""
    return dict(_identity())


@cache
def _identity() -> tuple[tuple[str, str], ...]:
    import platform

    found = {"OpMark's code": _code(), "Python": ".".join(platform.python_version_tuple()[:2])}
    for name in _DECISIVE:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return tuple(found.items())


def _code() -> str:
    """A hash of every Python file of the package."""
    folder = Path(str(resources.files("opmark")))
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0")
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def _run_checked(wanted: Mapping[str, str], function: Callable[[Any, Any], Any], shared: Any, task: Any) -> Any:
    """Run a task on a worker, unless the worker differs from the client in what decides a result."""
    here = identity()
    for name, value in wanted.items():
        if here[name] != value:
            raise UnavailableError(
                f"{name} on worker {_worker_name()} is {here[name]}, the client has {value}",
                hint="install the same version of OpMark and its packages on every worker",
            )
    return function(shared, task)


async def _take_resource(name: str, dask_worker: Any = None) -> None:
    await dask_worker.set_resources(**{name: 1})


def _worker_name() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _local_workers(address: str) -> int:
    """The number in `local:4`; 0 for the address of a scheduler. Raises `UsageError`."""
    scheme, colon, rest = address.partition(":")
    if scheme == LOCAL:
        if colon and rest.isdecimal() and len(rest) <= _DIGITS and int(rest) > 0:
            return int(rest)
    elif rest.startswith("//") and rest[2:]:
        return 0
    raise UsageError(f"{address!r} is not a cluster", hint="write it like tcp://scheduler:8786, or local:4")


def _local_cluster(workers: int) -> Any:
    """Worker processes of this machine with one thread each; nothing listens to other machines."""
    import logging

    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )


class _large_tasks_allowed(warnings.catch_warnings):  # noqa: N801 (reads as a statement)
    """Dask advises against large arguments; a problem or a release is one."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.filterwarnings("ignore", message="Sending large graph")
