"""Memory that the tensors of one process share, one after the other."""

import mmap
import weakref
from typing import Any

import numpy as np

# The vectors of kernels and the lines of caches begin at multiples of this.
_ALIGNED = 64
# The arena of ONNX Runtime gives out multiples of this, one after the other.
_ROUNDED = 256
_CHUNK_BYTES = 64 << 20


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


class KeptMemory:
    """Memory for the tensors of kernels, as the arena of ONNX Runtime gives it to those of a network (decision 0070).

    It begins at multiples of a vector, and its pages are small. Chunks without a living tensor are used again, up to
    `kept_bytes` of them: the first touch of new pages takes longer than to fill them.
    """

    def __init__(self, kept_bytes: int = 4 * _CHUNK_BYTES) -> None:
        self._chunks: list[_Chunk] = []
        self._most_bytes = kept_bytes

    @property
    def kept_bytes(self) -> int:
        """The bytes of all chunks, free or taken."""
        return sum(chunk.size_bytes for chunk in self._chunks)

    def take(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros or of old content; its memory is free again when nothing refers to it any more."""
        size_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        chunk = next((chunk for chunk in self._chunks if chunk.holds(size_bytes)), None)
        if chunk is None:
            self._let_go()
            chunk = _Chunk(max(_CHUNK_BYTES, size_bytes))
            self._chunks.append(chunk)
        return chunk.take(size_bytes).view(dtype).reshape(shape)

    def copied(self, values: Any) -> Any:
        """The same numbers in this memory."""
        taken = self.take(values.shape, values.dtype)
        taken[...] = values
        return taken

    def _let_go(self) -> None:
        """Give free chunks back to the system, the largest first, while too many are kept."""
        for chunk in sorted(self._chunks, key=lambda chunk: -chunk.size_bytes):
            if chunk.tensors == 0 and self.kept_bytes > self._most_bytes:
                self._chunks.remove(chunk)


class _Chunk:
    """Pages that tensors take one after the other; when none is left, all of them are free."""

    def __init__(self, size_bytes: int) -> None:
        # numpy would ask for huge pages, which the runtime does not.
        self._memory = memoryview(mmap.mmap(-1, max(size_bytes, 1)))
        self.size_bytes = size_bytes
        self.tensors = 0
        self._used_bytes = 0

    def holds(self, size_bytes: int) -> bool:
        """Return True if `size_bytes` more are left."""
        return self._used_bytes + size_bytes <= self.size_bytes

    def take(self, size_bytes: int) -> Any:
        """The next `size_bytes`."""
        begin = self._used_bytes
        self._used_bytes += -(-size_bytes // _ROUNDED) * _ROUNDED
        # All arrays that are made of this one refer to it.
        array = np.frombuffer(self._memory, dtype=np.uint8, count=size_bytes, offset=begin)
        self.tensors += 1
        weakref.finalize(array, self._freed)
        return array

    def _freed(self) -> None:
        self.tensors -= 1
        if self.tensors == 0:
            self._used_bytes = 0
