"""The work of every device of an execution: parts of a network in order, and the tensors that cross between devices."""

from dataclasses import dataclass
from itertools import count

# Tensors begin at multiples of this in the shared memory, so that no two of them share a cache line.
_ALIGNED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A tensor on its way from one device (by number) to another; its name differs if their runtimes do.

    Its bytes begin at `offset` of the shared memory; crossings of one tensor share them. One tensor may stand for
    several of another runtime, such as a tensor and its reshaped copies: each of them is a crossing.
    """

    number: int
    tensor: str
    received_as: str
    source: int
    destination: int
    size_bytes: int
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStep:
    """Wait for `receives`, run the kernels as one part, then send `sends` (numbers of crossings).

    `units` names the units of the problem in this step.
    """

    kernels: tuple[int, ...] = ()
    units: tuple[str, ...] = ()
    receives: tuple[int, ...] = ()
    sends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """The steps of one device. It holds the graph inputs `feeds` and ends with the graph outputs `outputs`."""

    steps: tuple[DeviceStep, ...]
    feeds: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """The work of all devices, in the order of the cluster, and everything that crosses between them."""

    devices: tuple[DeviceWork, ...]
    crossings: tuple[Crossing, ...]

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory that all crossings need."""
        return max((_rounded(one.offset + one.size_bytes) for one in self.crossings), default=0)


class CrossingTable:
    """Collects crossings; a tensor crosses once to each device and name, and is written once for all of them."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str, int, str], Crossing] = {}
        self._offsets: dict[tuple[int, str], int] = {}
        self._end = 0
        self._numbers = count()

    def number(self, *, tensor: str, received_as: str, source: int, destination: int, size_bytes: int) -> int:
        """The number of that crossing."""
        key = (source, tensor, destination, received_as)
        if key not in self._found:
            if key[:2] not in self._offsets:
                self._offsets[key[:2]] = self._end
                self._end += _rounded(size_bytes)
            self._found[key] = Crossing(
                number=next(self._numbers),
                tensor=tensor,
                received_as=received_as,
                source=source,
                destination=destination,
                size_bytes=size_bytes,
                offset=self._offsets[key[:2]],
            )
        return self._found[key].number

    def all(self) -> tuple[Crossing, ...]:
        """The crossings by number."""
        return tuple(self._found.values())


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _ALIGNED) * _ALIGNED
