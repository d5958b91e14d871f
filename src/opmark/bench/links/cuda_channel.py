"""Channels between the host and a CUDA GPU: torch copies from and to pinned and pageable memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from opmark.bench.links.channel import PAGEABLE, PINNED
from opmark.core.errors import MeasurementError

if TYPE_CHECKING:
    import torch

HOST = "host"


def devices() -> tuple[str, ...]:
    """The names of the GPUs that torch sees, such as `cuda:0`; empty without torch or a GPU."""
    try:
        import torch
    except ImportError:
        return ()
    return tuple(f"cuda:{index}" for index in range(torch.cuda.device_count())) if torch.cuda.is_available() else ()


def channels(device: str, most_bytes: int) -> "tuple[TorchChannel, ...]":
    """The channels of `device`: both directions with both kinds of host memory."""
    ends = ((HOST, device), (device, HOST))
    return tuple(
        TorchChannel(source=source, destination=destination, memory=memory, most_bytes=most_bytes)
        for memory in (PINNED, PAGEABLE)
        for source, destination in ends
    )


class TorchChannel:
    """Copies between the memory of the host and of a device; the first transfer allocates the buffers."""

    def __init__(self, *, source: str, destination: str, memory: str, most_bytes: int) -> None:
        self.source = source
        self.destination = destination
        self.memory = memory
        self._most_bytes = most_bytes
        self._buffers: dict[str, torch.Tensor] = {}

    def carry(self, size_bytes: int) -> "_Copy":
        """Copies of that size. Raises `MeasurementError` if a buffer does not fit."""
        for end in (self.source, self.destination):
            if end not in self._buffers:
                self._buffers[end] = self._buffer(end)
        device = self.destination if self.source == HOST else self.source
        return _Copy(self._buffers[self.source][:size_bytes], self._buffers[self.destination][:size_bytes], device)

    def overhead(self) -> Callable[[], None] | None:
        """None: the start of a copy and the wait for it are the cost of a small transfer."""
        return None

    def hand_off(self) -> Callable[[], None] | None:
        """None: a finished copy needs no separate signal."""
        return None

    def close(self) -> None:
        """Free the buffers."""
        self._buffers.clear()

    def _buffer(self, end: str) -> "torch.Tensor":
        import torch

        try:
            if end == HOST:
                made = torch.ones(self._most_bytes, dtype=torch.uint8, pin_memory=self.memory == PINNED)
            else:
                made = torch.ones(self._most_bytes, dtype=torch.uint8, device=end)
        except RuntimeError as error:
            said = str(error).splitlines()[0][:160]
            raise MeasurementError(f"no {self._most_bytes} bytes of {self.memory} memory on {end}: {said}") from error
        return made


class _Copy:
    """Transfers of one size."""

    def __init__(self, source: "torch.Tensor", destination: "torch.Tensor", device: str) -> None:
        import torch

        self._source, self._destination = source, destination
        self._wait: Callable[[], object]
        if device.startswith("cuda"):
            stream = torch.cuda.current_stream(device)
            self._wait = stream.synchronize
        else:
            self._wait = _nothing

    def before(self) -> None:
        """Wait until all earlier work has finished."""
        self._wait()

    def call(self) -> None:
        """Copy, and wait for the end."""
        self._destination.copy_(self._source, non_blocking=True)
        self._wait()


def _nothing() -> None:
    """Do nothing: a copy within the host has finished when it returns."""
