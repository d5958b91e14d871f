"""The interface of a channel that carries bytes between two devices of this machine."""

from collections.abc import Callable
from typing import Protocol

SHARED = "shared"
PINNED = "pinned"
PAGEABLE = "pageable"


class SizedTransfer(Protocol):
    """Transfers of one size."""

    def before(self) -> None:
        """Prepare the next transfer; not timed."""

    def call(self) -> None:
        """Make one transfer, and return when the bytes have arrived."""


class Channel(Protocol):
    """A directed link. The time of `overhead`, a call without bytes, is subtracted from every transfer."""

    source: str
    destination: str
    memory: str

    def carry(self, size_bytes: int) -> SizedTransfer:
        """Transfers of `size_bytes`. Raises `MeasurementError` without memory for them."""

    def overhead(self) -> Callable[[], None] | None:
        """A call with the fixed cost of a transfer; None if this cost counts as part of the transfer."""

    def hand_off(self) -> Callable[[], None] | None:
        """A round trip without bytes; None if a transfer needs no separate signal."""

    def close(self) -> None:
        """Free everything."""
