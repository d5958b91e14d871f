"""Locks between processes: one file per lock, held by the operating system until its process ends."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from opmark.core.errors import OpMarkError

# A lock that is taken right now is waited for; after this time the caller hears of it.
QUIET_S = 1.0


@contextlib.contextmanager
def locked(path: Path, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file `path`; a thread that holds it already may take it again.

    `waiting` is called once where another process holds the lock for more than a second. The file stays. Raises
    `OpMarkError` where it cannot be made.
    """
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # one object per path, with a state per thread: a nested call does not wait for itself, another thread does
        lock = FileLock(path, is_singleton=True)
        try:
            lock.acquire(timeout=QUIET_S)
        except Timeout:
            waiting()
            lock.acquire()
    except OSError as error:
        raise OpMarkError(
            f"cannot be locked: {error.strerror or error}",
            where=str(path),
            hint="choose a folder that you can write to",
        ) from error
    try:
        yield
    finally:
        lock.release()
