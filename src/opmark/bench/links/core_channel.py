"""A channel between two cores through shared memory: a partner process writes, and this process copies.

The partner is `python -m opmark.bench.links.core_channel DESCRIPTOR BYTES CORE`.
"""

import contextlib
import mmap
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from opmark.bench.links.channel import SHARED
from opmark.core.errors import MeasurementError, UnavailableError

_PATIENCE_S = 20
_MAY_CHOOSE = hasattr(os, "sched_setaffinity")
MEMORY = Path("/dev/shm")  # noqa: S108 (shared memory, not a predictable file)


class CoreChannel:
    """From the last core of this process to the first, for transfers of up to `most_bytes`.

    The operating system chooses the cores if processes may not. Raises `UnavailableError` with only one core, unless
    `alone` is set: then both ends share it.
    """

    source = "core1"
    destination = "core0"
    memory = SHARED

    def __init__(self, most_bytes: int, *, alone: bool = False) -> None:
        import numpy as np

        self._cores = _cores()
        if len(self._cores) < 2 and not alone:
            raise UnavailableError("there is no second core to transfer to")
        with tempfile.TemporaryFile(dir=MEMORY if MEMORY.is_dir() else None) as file:
            try:
                file.truncate(most_bytes)
                self._shared = mmap.mmap(file.fileno(), most_bytes)
            except (OSError, ValueError) as error:
                raise MeasurementError(f"no {most_bytes} bytes of shared memory: {error}") from error
            command = (sys.executable, "-m", __name__, str(file.fileno()), str(most_bytes), str(self._cores[-1]))
            self._partner = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, pass_fds=(file.fileno(),)
            )
        self._source: Any = np.frombuffer(self._shared, dtype=np.uint8)
        self._destination: Any = np.ones(most_bytes, dtype=np.uint8)
        self._selector = selectors.DefaultSelector()
        assert self._partner.stdin is not None
        assert self._partner.stdout is not None
        self._requests, self._answers = self._partner.stdin, self._partner.stdout
        self._selector.register(self._answers, selectors.EVENT_READ)
        try:
            self.round_trip(0)
        except MeasurementError:
            self.close()
            raise
        # Only this thread: the threads of a runtime would inherit the affinity.
        _stay_on(self._cores[:1])

    def carry(self, size_bytes: int) -> "_Copy":
        """Copies of bytes that the partner has just written, which may still be in its caches."""
        return _Copy(self, self._source[:size_bytes], self._destination[:size_bytes])

    def overhead(self) -> Callable[[], None] | None:
        """A copy of no bytes."""
        return self.carry(0).call

    def hand_off(self) -> Callable[[], None] | None:
        """A round trip to the partner without bytes."""
        return lambda: self.round_trip(0)

    def round_trip(self, size_bytes: int) -> None:
        """Let the partner write `size_bytes`, and wait. Raises `MeasurementError` without an answer."""
        try:
            self._requests.write(size_bytes.to_bytes(8, "little"))
            # A read would block for ever if the partner hangs; `select` costs one system call on this side only.
            if not self._selector.select(_PATIENCE_S):
                raise MeasurementError("the process on the other core does not answer")
            answer = self._answers.read(1)
        except OSError as error:
            raise MeasurementError("the process on the other core is gone") from error
        if not answer:
            raise MeasurementError("the process on the other core is gone")

    def close(self) -> None:
        """End the partner, and free the memory."""
        _stay_on(self._cores)
        with contextlib.suppress(OSError):
            self._requests.close()
        try:
            self._partner.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._partner.kill()
            self._partner.wait()
        self._selector.close()
        self._answers.close()
        # The shared memory lives as long as an array refers to it.
        self._source = self._destination = None


class _Copy:
    """Transfers of one size."""

    def __init__(self, channel: CoreChannel, source: Any, destination: Any) -> None:
        import numpy as np

        self._channel, self._source, self._destination = channel, source, destination
        self._copy = np.copyto

    def before(self) -> None:
        """Let the other core write fresh bytes."""
        self._channel.round_trip(self._source.nbytes)

    def call(self) -> None:
        """Copy the bytes."""
        self._copy(self._destination, self._source)


def _cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if _MAY_CHOOSE else list(range(os.cpu_count() or 1))


def _stay_on(cores: Collection[int]) -> None:
    if _MAY_CHOOSE:
        os.sched_setaffinity(0, set(cores))


def serve(descriptor: int, most_bytes: int, core: int) -> None:
    """Write the requested sizes into the shared memory, on `core`, until the input ends."""
    import numpy as np

    _stay_on([core])
    memory: Any = np.frombuffer(mmap.mmap(descriptor, most_bytes), dtype=np.uint8)
    turn = 0
    while len(message := os.read(0, 8)) == 8:
        turn = (turn + 1) % 251
        memory[: int.from_bytes(message, "little")] = turn
        os.write(1, b"x")


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:]))
