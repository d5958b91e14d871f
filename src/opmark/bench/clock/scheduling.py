"""Scheduling of this process: real-time priority, processor pressure and memory limits."""

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

FIFO = "fifo"
NORMAL = "normal"
# Without real-time priority, and the machine never became quiet enough for a long sample.
CONTENDED = "contended"
# The system does not report interrupted samples.
UNFILTERED = "unfiltered"

_PRIORITY = 10
_PRESSURE = Path("/proc/pressure/cpu")
_PROCESSORS = Path("/sys/devices/system/cpu")


def may_use_fifo() -> bool:
    """Return True if this process may run under SCHED_FIFO (root or CAP_SYS_NICE)."""
    try:
        with fifo():
            return True
    except (AttributeError, OSError):
        return False


@contextlib.contextmanager
def fifo() -> Iterator[None]:
    """Run the block under SCHED_FIFO. Raises `PermissionError` if the system forbids it."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def cpu_pressure() -> float | None:
    """The percentage of the last ten seconds in which a task waited for a processor; None if unknown."""
    try:
        first = _PRESSURE.read_text().splitlines()[0]
    except (OSError, IndexError):
        return None
    fields = dict(item.split("=") for item in first.split()[1:])
    return float(fields["avg10"])


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent dies, even during a hanging kernel."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def prefer_as_victim() -> None:
    """Let the system kill this process first when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_memory() -> None:
    """Let an allocation beyond the machine's memory fail here, before the system kills another process."""
    with contextlib.suppress(OSError, ValueError):
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_DATA, (physical, physical))


def pin(threads: int) -> None:
    """Keep this process and the threads that it starts on as many processors as it has `threads`, on different cores.

    A single thread is left to the system, which may move it away from a busy processor.
    """
    if threads < 2 or not hasattr(os, "sched_setaffinity"):
        return
    own = sorted(os.sched_getaffinity(0))
    by_core: dict[str, list[int]] = {}
    for processor in own:
        by_core.setdefault(_core(processor), []).append(processor)
    # the first processor of every core, then the second ones
    ranked = sorted((place, processor) for found in by_core.values() for place, processor in enumerate(found))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {processor for _, processor in ranked[:threads]})


def _core(processor: int) -> str:
    """The processors that share the core of `processor`, as Linux lists them; unknown ones are alone."""
    try:
        return (_PROCESSORS / f"cpu{processor}" / "topology" / "thread_siblings_list").read_text()
    except OSError:
        return str(processor)
