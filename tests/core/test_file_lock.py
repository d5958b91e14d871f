"""Locks: one holder at a time among processes and threads, and again at once after a holder was killed."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from opmark.core.errors import OpMarkError
from opmark.core.file_lock import locked


def _count(folder: Path, times: int) -> None:
    """Read, change and write a number; without a lock, some changes are lost."""
    for _ in range(times):
        with locked(folder / ".lock"):
            path = folder / "number"
            number = int(path.read_text())
            time.sleep(0.001)
            path.write_text(str(number + 1))


def test_processes_and_threads_take_turns(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_count, args=(tmp_path, 20)) for _ in range(3)]
    threads = [threading.Thread(target=_count, args=(tmp_path, 20)) for _ in range(2)]
    for one in (*others, *threads):
        one.start()
    for one in (*others, *threads):
        one.join()
    assert (tmp_path / "number").read_text() == "100"


def _hold(path: Path, ready: "multiprocessing.synchronize.Event") -> None:
    with locked(path):
        ready.set()
        time.sleep(600)


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".lock"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(path, ready))
    holder.start()
    assert ready.wait(60)
    waited: list[bool] = []

    def kill() -> None:
        waited.append(True)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)

    with locked(path, waiting=kill), locked(path):
        assert waited == [True]
    holder.join()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OpMarkError, match="cannot be locked"), locked(tmp_path / "file" / ".lock"):
        pass
