"""Real-time priority for timed bursts where this process may have it, and how pressed the processors are."""

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

FIFO = "fifo"
NORMAL = "normal"
# No real-time priority, and the machine never became quiet enough for a long sample.
CONTENDED = "contended"
# The system does not tell which samples were interrupted.
UNFILTERED = "unfiltered"

_PRIORITY = 10
_PRESSURE = Path("/proc/pressure/cpu")


def may_use_fifo() -> bool:
    """Whether this process may run under SCHED_FIFO (root or CAP_SYS_NICE)."""
    try:
        with fifo():
            return True
    except (AttributeError, OSError):
        return False


@contextlib.contextmanager
def fifo() -> Iterator[None]:
    """This thread under SCHED_FIFO within the block. Raises `PermissionError` where that is not allowed."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def cpu_pressure() -> float | None:
    """Percent of the last ten seconds in which something waited for a processor; None where unknown."""
    try:
        first = _PRESSURE.read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    fields = dict(item.split("=") for item in first.split()[1:])
    return float(fields["avg10"])


def die_with_parent() -> None:
    """Ask Linux to kill this process when the one that started it dies, even in the middle of a hanging kernel."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def prefer_as_victim() -> None:
    """When memory runs out, this process goes before any other."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_memory() -> None:
    """Let an allocation beyond the machine's memory fail here, before something else is killed for it."""
    with contextlib.suppress(OSError, ValueError):
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_DATA, (physical, physical))
