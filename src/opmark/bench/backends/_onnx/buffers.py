"""Memory that the tensors of one process share, one after the other."""

from typing import Any

import numpy as np

# The vectors of kernels and the lines of caches begin at multiples of this.
_ALIGNED = 64


class BufferPool:
    """Blocks for tensors that are alive for some parts of a network only.

    A tensor gets the smallest free block that holds it, and of equal ones the one that was freed last: its lines are
    still in cache. A session reuses the memory of its tensors in the same way.
    """

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._taken: dict[str, Any] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros or of old content for the tensor `name`."""
        size_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        fitting = [place for place, block in enumerate(self._free) if block.nbytes >= size_bytes]
        if fitting:
            block = self._free.pop(min(fitting, key=lambda place: (self._free[place].nbytes, -place)))
        else:
            block = aligned_bytes(size_bytes)
        self._taken[name] = block
        return block[:size_bytes].view(dtype).reshape(shape)

    def release(self, name: str) -> None:
        """Nothing reads `name` any more; a tensor that has no block is ignored."""
        block = self._taken.pop(name, None)
        if block is not None:
            self._free.append(block)


def aligned_bytes(size_bytes: int) -> Any:
    """Zeroed bytes that begin at a multiple of a cache line."""
    memory = np.zeros(size_bytes + _ALIGNED, dtype=np.uint8)
    start = -memory.ctypes.data % _ALIGNED
    return memory[start : start + size_bytes]
