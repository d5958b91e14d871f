"""What can carry a tensor from one device of this machine to another, as a link measurement sees it."""

from collections.abc import Callable
from typing import Protocol

SHARED = "shared"
PINNED = "pinned"
PAGEABLE = "pageable"


class Carried(Protocol):
    """Transfers of one size."""

    def before(self) -> None:
        """What must have happened before each transfer; not timed."""

    def call(self) -> None:
        """One transfer; returns when the bytes have arrived."""


class Channel(Protocol):
    """A directed link that can be used. `overhead` is a call that carries nothing, taken off every transfer."""

    source: str
    destination: str
    memory: str

    def carry(self, size_bytes: int) -> Carried:
        """Transfers of `size_bytes`. Raises `MeasurementError` where there is no room for them."""

    def overhead(self) -> Callable[[], None] | None:
        """A call that costs what carrying costs besides the bytes, or None where that is part of the transfer."""

    def hand_off(self) -> Callable[[], None] | None:
        """A round trip that hands nothing over and back, or None where a transfer is its own signal."""

    def close(self) -> None:
        """Free everything."""
