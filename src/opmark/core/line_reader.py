"""Read lines from the pipe of another process, with a time limit."""

import os
import selectors
import time
from typing import IO

_PIECE_BYTES = 1 << 20


class LineReader:
    """Reads whole lines from `stream`, which nothing else reads."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._descriptor = stream.fileno()
        self._buffer = bytearray()

    def read(self, limit_s: float) -> bytes | None:
        """The next line without its end, empty at the end of the stream, or None after `limit_s` seconds."""
        until = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, until - time.monotonic())):
                    return None
                piece = os.read(self._descriptor, _PIECE_BYTES)
                if not piece:
                    return b""
                self._buffer += piece
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        return line
