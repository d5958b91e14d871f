"""The interface to run many independent tasks, and its two forms on this machine: one after another, and in threads.

`opmark.core.parallel.dask_map` is the form for several machines. A caller stores results as they come; neither results
nor what is stored may depend on the form or on the order in which tasks end.
"""

import concurrent.futures
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class MapProgress:
    """The progress over all tasks; `left_s` is estimated from the pace so far, None before the first task ends."""

    done: int
    total: int
    left_s: float | None = None


class TaskMap(ABC):
    """A place where tasks run. Use it as a context manager.

    For a cluster, the function, the shared value, tasks and results must be picklable. A task may run more than once,
    so it changes nothing outside its result.
    """

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of tasks that run at the same time, at least 1."""

    @abstractmethod
    def run(
        self, function: Callable[[Shared, Task], Result], tasks: Sequence[Task], *, shared: Shared
    ) -> Generator[tuple[int, Result], None, None]:
        """`function(shared, task)` of every task, as (number of the task, result) in the order in which they end.

        The first exception of a task ends the run. Tasks that have not begun are dropped when the iterator is closed.
        """

    def in_order(
        self,
        function: Callable[[Shared, Task], Result],
        tasks: Sequence[Task],
        *,
        shared: Shared,
        progress: Callable[[MapProgress], None] = lambda _: None,
    ) -> list[Result]:
        """The results of all tasks in the order of the tasks, with the progress of the whole."""
        found: dict[int, Result] = {}
        begun = time.monotonic()
        progress(MapProgress(done=0, total=len(tasks)))
        for number, result in self.run(function, tasks, shared=shared):
            found[number] = result
            pace_s = (time.monotonic() - begun) / len(found)
            progress(MapProgress(done=len(found), total=len(tasks), left_s=pace_s * (len(tasks) - len(found))))
        return [found[number] for number in range(len(tasks))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release what the map holds."""
        return


class InTurn(TaskMap):
    """Tasks run in this thread, one after another."""

    @property
    def slots(self) -> int:
        """One."""
        return 1

    def run(
        self, function: Callable[[Shared, Task], Result], tasks: Sequence[Task], *, shared: Shared
    ) -> Generator[tuple[int, Result], None, None]:
        """Run each task when its result is asked for."""
        for number, task in enumerate(tasks):
            yield number, function(shared, task)


class InThreads(TaskMap):
    """Tasks run in threads of this process: for tasks that wait for processes of their own."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    @property
    def slots(self) -> int:
        """The number of threads."""
        return self._threads

    def run(
        self, function: Callable[[Shared, Task], Result], tasks: Sequence[Task], *, shared: Shared
    ) -> Generator[tuple[int, Result], None, None]:
        """Start all tasks in order; an exception leaves those that run to end by themselves."""
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=self._threads)
        try:
            numbers = {pool.submit(function, shared, task): number for number, task in enumerate(tasks)}
            for future in concurrent.futures.as_completed(numbers):
                yield numbers[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
