"""The processor's sentinels: two fixed pieces of work that reveal drift of the machine."""

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
    """A small matrix product: it follows the clock frequency and stolen time."""

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
    """A copy larger than a core's own caches: it follows the neighbours' use of the shared cache."""

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
    """Ones on huge pages, if the system has them.

    On small pages the copy takes 61 to 77 µs, depending on the physical pages of the process; on huge pages 60 to 63.
    A sentinel must show differences between machines, not between processes.
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
    """The `compute` and `memory` sentinels; run them with one BLAS thread."""
    return {"compute": _Multiply(), "memory": _Copy()}
