"""Memory and signals that the processes of an execution share; both vanish with the last process that holds them."""

import itertools
import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opmark.bench.links.core_channel import MEMORY
from opmark.core.errors import MeasurementError
from opmark.core.units import format_bytes


class SharedMemory:
    """Shared bytes without a name in the file system, and one pipe per ordered pair of processes.

    The kernel frees them when the last process ends, however it ends.
    """

    def __init__(self, processes: int, *, folder: Path = MEMORY) -> None:
        self._file = tempfile.TemporaryFile(dir=folder if folder.is_dir() else None)  # noqa: SIM115
        pairs = itertools.permutations(range(processes), 2)
        # (source, destination) -> (end to read, end to write)
        self.pipes: Mapping[tuple[int, int], tuple[int, int]] = {pair: os.pipe() for pair in pairs}

    @property
    def descriptor(self) -> int:
        """The descriptor of the shared bytes."""
        return self._file.fileno()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Every descriptor that a worker inherits."""
        return (self.descriptor, *(end for pipe in self.pipes.values() for end in pipe))

    def reserve(self, size_bytes: int) -> None:
        """Make room for `size_bytes`. Raises `MeasurementError` if the system has no more shared memory."""
        state = os.fstatvfs(self.descriptor)
        free = state.f_bavail * state.f_frsize + os.fstat(self.descriptor).st_blocks * 512
        try:
            if size_bytes > free:
                raise OSError(f"{format_bytes(free)} are free")
            os.ftruncate(self.descriptor, size_bytes)
            if size_bytes:
                # A page that is missing later would kill the process that writes to it.
                os.posix_fallocate(self.descriptor, 0, size_bytes)
        except OSError as error:
            raise MeasurementError(
                f"the transfers of this placement do not fit into shared memory: they need {format_bytes(size_bytes)}, "
                f"and {error.strerror or error}",
                hint="cut the network at fewer or smaller tensors, or enlarge /dev/shm",
            ) from error

    def close(self) -> None:
        """Let go of everything."""
        self._file.close()
        for ends in self.pipes.values():
            for end in ends:
                os.close(end)


def mapped(descriptor: int, size_bytes: int) -> Any:
    """The shared bytes as an array, in a process that inherited the descriptor."""
    import numpy as np

    return np.frombuffer(mmap.mmap(descriptor, size_bytes), dtype=np.uint8)
