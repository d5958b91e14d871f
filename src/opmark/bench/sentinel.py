"""Two fixed pieces of work on the processor: when they drift, so did the machine."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from opmark.bench.backend import Prepared

_COMPUTE_SIDE = 128
_MEMORY_BYTES = 4 << 20


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
        self._source: Any = np.ones(_MEMORY_BYTES // 4, dtype=np.float32)
        self._out: Any = np.empty_like(self._source)

    def call(self) -> None:
        """Copy once."""
        np.copyto(self._out, self._source)

    def close(self) -> None:
        """Free the arrays."""
        self._source = self._out = None


def processor_sentinels() -> Mapping[str, Prepared]:
    """The `compute` and the `memory` sentinel; run them with one BLAS thread."""
    return {"compute": _Multiply(), "memory": _Copy()}
