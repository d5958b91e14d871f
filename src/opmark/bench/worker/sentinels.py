"""Two fixed pieces of work on the processor: when they drift, so did the machine."""

import contextlib
import mmap
from collections.abc import Mapping
from typing import Any

import numpy as np

from opmark.bench.worker.backend import Prepared

_COMPUTE_SIDE = 128
_MEMORY_BYTES = 4 << 20
_HUGE_PAGE_BYTES = 2 << 20


class _Multiply:
    """A small matrix product: moves with the clock frequency and with stolen time."""

    copies = 1

    def __init__(self) -> None:
        self._left: Any = np.ones((_COMPUTE_SIDE, _COMPUTE_SIDE), dtype=np.float32)
        self._out: Any = np.empty_like(self._left)

    def call(self) -> None:
        """Multiply once."""
        np.matmul(self._left, self._left, out=self._out)

    def close(self) -> None:
        """Free the matrices."""
        self._left = self._out = None


class _Copy:
    """A copy larger than a core's own caches: moves with what neighbours do to the shared one."""

    copies = 1

    def __init__(self) -> None:
        self._source: Any = _array(_MEMORY_BYTES)
        self._out: Any = _array(_MEMORY_BYTES)

    def call(self) -> None:
        """Copy once."""
        np.copyto(self._out, self._source)

    def close(self) -> None:
        """Free the arrays."""
        self._source = self._out = None


def _array(size_bytes: int) -> Any:
    """Ones on huge pages where the system has them.

    On small pages the copy takes between 61 and 77 µs, by which physical pages a process happens to get; on huge ones
    60 to 63. A sentinel must tell machines apart, not processes.
    """
    memory = mmap.mmap(-1, size_bytes + _HUGE_PAGE_BYTES)
    with contextlib.suppress(OSError, AttributeError):
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, dtype=np.uint8)
    start = -whole.ctypes.data % _HUGE_PAGE_BYTES
    array = whole[start : start + size_bytes].view(np.float32)
    array[:] = 1.0
    return array


def processor_sentinels() -> Mapping[str, Prepared]:
    """The `compute` and the `memory` sentinel; run them with one BLAS thread."""
    return {"compute": _Multiply(), "memory": _Copy()}
