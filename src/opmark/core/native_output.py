"""Lines that a library's C code prints, kept away from standard output, which carries the caller's data."""

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

_OUTPUT = 1
# Standard output belongs to the whole process: of several threads, one at a time may send it elsewhere.
_lock = threading.Lock()


@contextlib.contextmanager
def native_output_discarded() -> Iterator[None]:
    """Nothing that is printed within the block reaches standard output, whatever language prints it.

    `contextlib.redirect_stdout` sees Python's own output only. Threads that print meanwhile lose their lines.
    """
    with _lock:
        try:
            kept = os.dup(_OUTPUT)
        except OSError:  # closed: nothing can reach it
            yield
            return
        try:
            _flush()
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 (a device, not a path)
                os.dup2(nowhere.fileno(), _OUTPUT)
            yield
        finally:
            _flush()
            os.dup2(kept, _OUTPUT)
            os.close(kept)


def _flush() -> None:
    """Write what C code has printed so far to where standard output leads now."""
    with contextlib.suppress(OSError, TypeError, AttributeError):  # a system without C's library in the process
        ctypes.CDLL(None).fflush(None)
