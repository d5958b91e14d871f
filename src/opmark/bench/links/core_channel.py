"""From one core to another through shared memory: a partner writes, we copy what it wrote.

The partner is `python -m opmark.bench.links.core_channel DESCRIPTOR BYTES CORE`, a process of its own.
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
_MEMORY = Path("/dev/shm")  # noqa: S108 (memory that two processes share, not a predictable file)


class CoreChannel:
    """From the last core this process may use to the first, for transfers of up to `most_bytes`.

    Where a system does not let processes choose their cores, it chooses. Raises `UnavailableError` where there is only
    one core, unless `alone`: then both ends share it.
    """

    source = "core1"
    destination = "core0"
    memory = SHARED

    def __init__(self, most_bytes: int, *, alone: bool = False) -> None:
        import numpy as np

        self._cores = _cores()
        if len(self._cores) < 2 and not alone:
            raise UnavailableError("there is no second core to carry anything to")
        with tempfile.TemporaryFile(dir=_MEMORY if _MEMORY.is_dir() else None) as file:
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
        # This thread only: a runtime's own threads would inherit it.
        _stay_on(self._cores[:1])

    def carry(self, size_bytes: int) -> "_Copy":
        """Copies of what the partner has just written, out of its caches where they hold it."""
        return _Copy(self, self._source[:size_bytes], self._destination[:size_bytes])

    def overhead(self) -> Callable[[], None] | None:
        """A copy of nothing."""
        return self.carry(0).call

    def hand_off(self) -> Callable[[], None] | None:
        """A wake-up there and back."""
        return lambda: self.round_trip(0)

    def round_trip(self, size_bytes: int) -> None:
        """Let the partner write `size_bytes`, and wait for it. Raises `MeasurementError` where it does not answer."""
        try:
            self._requests.write(size_bytes.to_bytes(8, "little"))
            # Reading blocks for ever where the partner hangs; asking first costs a system call on this side only.
            if not self._selector.select(_PATIENCE_S):
                raise MeasurementError("the process on the other core does not answer")
            answer = self._answers.read(1)
        except OSError as error:
            raise MeasurementError("the process on the other core is gone") from error
        if not answer:
            raise MeasurementError("the process on the other core is gone")

    def close(self) -> None:
        """Send the partner home."""
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
        # The array looks into the shared memory, which lives for as long as something does.
        self._source = self._destination = None


class _Copy:
    """One size."""

    def __init__(self, channel: CoreChannel, source: Any, destination: Any) -> None:
        import numpy as np

        self._channel, self._source, self._destination = channel, source, destination
        self._copy = np.copyto

    def before(self) -> None:
        """Fresh bytes from the other core."""
        self._channel.round_trip(self._source.nbytes)

    def call(self) -> None:
        """Copy them."""
        self._copy(self._destination, self._source)


def _cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if _MAY_CHOOSE else list(range(os.cpu_count() or 1))


def _stay_on(cores: Collection[int]) -> None:
    if _MAY_CHOOSE:
        os.sched_setaffinity(0, set(cores))


def serve(descriptor: int, most_bytes: int, core: int) -> None:
    """Write what is asked for into the shared memory, from `core`, until nobody asks."""
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
