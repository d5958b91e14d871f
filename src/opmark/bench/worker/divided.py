"""The interface of a network that one process executes in parts, each between two transfers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

# The places of a tensor that a fingerprint reads.
_PROBES = 7
_INFINITE = 1e4
# Two runtimes add in different orders.
TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A few numbers that tell tensors apart: element type, number of elements, weighted sums, and single elements.

    Views of one tensor have one fingerprint, because the elements are read in their logical order.
    """

    dtype: str
    elements: int
    numbers: tuple[float, ...]

    def matches(self, other: "Fingerprint") -> bool:
        """True if both may come from one tensor, computed by two runtimes."""
        if (self.dtype, self.elements) != (other.dtype, other.elements):
            return False
        return bool(np.allclose(self.numbers, other.numbers, rtol=TOLERANCE, atol=TOLERANCE * self._scale))

    @property
    def _scale(self) -> float:
        """The root mean square of the elements."""
        return self.numbers[0]


def fingerprint(array: Any) -> Fingerprint:
    """The fingerprint of `array`; `numbers` starts with the root mean square."""
    flat = np.asarray(array).reshape(-1)
    # Masks hold infinities, which would hide all other elements and cannot be sent as JSON.
    values = np.nan_to_num(flat.astype(np.float64), nan=0.0, posinf=_INFINITE, neginf=-_INFINITE)
    if not len(values):
        return Fingerprint(dtype=str(flat.dtype), elements=0, numbers=(0.0,))
    places = np.linspace(0, len(values) - 1, _PROBES).astype(np.int64)
    waves = [float(np.mean(values * np.cos(np.arange(len(values)) * step))) for step in (0.0, 0.7, 0.013)]
    numbers = (float(np.sqrt(np.mean(values**2))), *waves, *values[places].tolist())
    return Fingerprint(dtype=str(flat.dtype), elements=len(values), numbers=numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKernel:
    """A kernel of the captured graph: its name, the activations it reads, and its outputs."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPart:
    """Kernels, by number, that run without a transfer between them, and the tensors received before and sent after."""

    kernels: tuple[int, ...]
    receives: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One run of the undivided network: its outputs as arrays, and the fingerprints of the tensors inside it."""

    outputs: tuple[Any, ...]
    tensors: Mapping[str, Fingerprint]


class DividedNetwork(Protocol):
    """A network in one process: whole, or only the parts that its device runs.

    A tensor that is sent or received has a plain layout in memory, whatever the runtime uses inside.
    """

    def adopt(self, kernels: Sequence[NamedKernel], inputs: Sequence[str]) -> None:
        """Use the names and the order of the captured graph. Raises `MeasurementError` if it has other kernels."""

    def example(self) -> tuple[Any, ...]:
        """One array per input; every process makes the same ones."""

    def survey(self, feeds: Sequence[Any], tensors: Sequence[str]) -> Survey:
        """Run the undivided network once on `feeds`, and read `tensors` beside its outputs."""

    def size_bytes(self, tensor: str) -> int:
        """The bytes of `tensor` in its plain layout."""

    def divide(self, parts: Sequence[NetworkPart], shared: Mapping[str, Any], feeds: Mapping[str, Any]) -> None:
        """Build `parts`. `shared` maps sent and received tensors to bytes that another process sees.

        `feeds` are the graph inputs that this device holds. Raises `MeasurementError` if the runtime refuses a part.
        """

    def run(self, part: int) -> None:
        """Run one part, and return when it has finished."""

    def accept(self, tensor: str) -> None:
        """Copy a received tensor out of the shared bytes."""

    def publish(self, tensor: str) -> None:
        """Make sure that a sent tensor is in the shared bytes."""

    def value(self, tensor: str) -> Any:
        """The current content of an output that this device made or received, as an array."""
