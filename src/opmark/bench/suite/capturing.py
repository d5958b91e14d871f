"""The progress of planning: capturing the graphs of a suite takes most of its time, minutes where none is cached."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """Graphs that are `done` of `total`; `left_s` is estimated from the pace so far, None before the first one."""

    done: int
    total: int
    left_s: float | None
    doing: str


PlanListener = Callable[[PlanProgress], None]


def nobody(_now: PlanProgress) -> None:
    """Listen to nothing."""


class CaptureCount:
    """Counts the graphs of all targets, and tells a listener about the next one before it is captured."""

    def __init__(self, listener: PlanListener) -> None:
        self._listener = listener
        self._begun = time.monotonic()
        self._done = 0
        self.total = 0

    def capturing(self, network: str, target: str) -> None:
        """Tell that the graph of `network` comes next; all earlier ones are done."""
        self._tell(f"capturing {network} for {target}")
        self._done += 1

    def drawing(self, target: str) -> None:
        """Tell that the kernels of a target are drawn."""
        self._tell(f"drawing kernels for {target}")

    def _tell(self, doing: str) -> None:
        total = max(self.total, self._done)
        spent_s = time.monotonic() - self._begun
        left_s = spent_s * (total - self._done) / self._done if self._done else None
        self._listener(PlanProgress(done=self._done, total=total, left_s=left_s, doing=doing))
