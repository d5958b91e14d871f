"""Tasks that the tests send to workers: they must be importable there."""

import os
import signal
import time
from pathlib import Path

from opmark.core.errors import ContentError


def product(shared: int, task: int) -> int:
    """A result that names both arguments; later tasks end first."""
    time.sleep(0.02 * (5 - task % 5))
    return shared * task


def process(_shared: None, _task: int) -> int:
    """The number of the process that runs it."""
    time.sleep(0.05)
    return os.getpid()


def refuse(_shared: None, task: int) -> int:
    """Fail on one task."""
    if task == 2:
        raise ContentError("this one is wrong", where="tasks: 2", hint="leave it out")
    return task


def crash(_shared: None, task: int) -> int:
    """Fail as OpMark never does."""
    raise ZeroDivisionError(f"task {task}")


def die_once(folder: Path, task: int) -> tuple[int, int]:
    """Kill the worker at the first try of task 3; returns the task, and how often it was begun."""
    begun = folder / f"begun-{task}-{os.getpid()}-{time.monotonic_ns()}"
    begun.touch()
    time.sleep(0.1)
    if task == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task, len(list(folder.glob(f"begun-{task}-*")))


def always_die(_shared: None, task: int) -> int:
    """Kill every worker that tries task 1."""
    if task == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task
