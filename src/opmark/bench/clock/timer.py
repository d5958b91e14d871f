"""The machine's clock, and what it knows about being interrupted."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A clock and what the operating system did to this thread.

    `preemptions` counts involuntary context switches so far; None where the system does not say (`unfiltered`).
    `faults` counts minor page faults so far, `sleep` takes seconds.
    """

    now_ns: Callable[[], int]
    preemptions: Callable[[], int] | None
    faults: Callable[[], int]
    sleep: Callable[[float], None] = time.sleep


def machine_timer() -> Timer:
    """This machine's monotonic clock and this thread's resource usage."""
    try:
        import resource
    except ImportError:  # not a Unix
        return Timer(now_ns=time.perf_counter_ns, preemptions=None, faults=lambda: 0)
    usage = resource.getrusage
    who = getattr(resource, "RUSAGE_THREAD", None)
    if who is None:
        return Timer(
            now_ns=time.perf_counter_ns,
            preemptions=None,
            faults=lambda: usage(resource.RUSAGE_SELF).ru_minflt,
        )
    thread: int = who
    return Timer(
        now_ns=time.perf_counter_ns,
        preemptions=lambda: usage(thread).ru_nivcsw,
        faults=lambda: usage(thread).ru_minflt,
    )
