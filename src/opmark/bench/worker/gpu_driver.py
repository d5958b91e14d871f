"""What measuring on a GPU asks of its driver and runtime; a test hands in one without a GPU."""

from collections.abc import Callable
from typing import Protocol

Enqueue = Callable[[], object]


class Replayable(Protocol):
    """Calls recorded once, which the device then makes with no host between them."""

    def replay_ns(self) -> float:
        """Make them all; the time between the device's own marks before the first and after the last."""

    def close(self) -> None:
        """Free them."""


class GpuDriver(Protocol):
    """One GPU in this process. No method changes the card's settings."""

    level2_bytes: int
    memory_bytes: int

    def record(self, enqueue: Enqueue, calls: int) -> Replayable:
        """`calls` calls in a row as one graph. Raises `MeasurementError` where they cannot be recorded."""

    def cold_ns(self, enqueue: Enqueue, hold_ns: float) -> float:
        """One call after the level-2 cache was flushed, whole and no more.

        A blocking kernel holds the device for at least `hold_ns` meanwhile, so that the host has enqueued the call
        before its time begins.
        """

    def finish(self) -> None:
        """Wait until the device has done everything. Raises `SystemExit` where it never will again."""

    def clock_mhz(self) -> float | None:
        """The clock of its processors now; None where the driver does not say."""

    def forget_peak(self) -> None:
        """Start `peak_bytes` anew."""

    def peak_bytes(self) -> int:
        """The most memory that tensors took at once since then."""

    def release(self) -> None:
        """Give memory back that nothing uses."""
