"""The progress and the summary of a run, and its interruption by Ctrl-C."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The progress of a run; `left_s` is the estimated time left, None while it is unknown.

    `done` of `total` trials were looked at; once all were, these count the looks of the present refining pass, and
    without a budget `left_s` is the time left of that pass.
    """

    done: int
    total: int
    seconds: float
    left_s: float | None
    doing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The result of a run; all counts include the trials of the plan that earlier runs measured.

    `done` trials have labels or could not be measured. `median_standard_error` is that of their main labels, a
    fraction. `waited_seconds` were spent waiting for a calm machine.
    """

    journal: Path
    suite: str
    planned: int
    done: int
    statuses: Mapping[str, int]
    seconds: float
    interrupted: bool
    kernels: int = 0
    networks: int = 0
    waited_seconds: float = 0.0
    median_standard_error: float | None = None

    @property
    def complete(self) -> bool:
        """True if nothing is left to measure."""
        return self.done == self.planned


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl-C within the block; a second Ctrl-C interrupts as usual.

    Only the main thread may set signal handlers; in other threads the block runs without one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(_signal: int, _frame: object) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
