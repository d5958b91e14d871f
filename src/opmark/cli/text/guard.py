"""Standard output and error behind a guard: whatever a command prints, the terminal receives text and no commands.

The guard sees everything that this process prints: results, click's and our own errors, warnings and tracebacks.
Colours and progress bars are our own commands; they are written to the stream behind the guard, around cleaned text.
"""

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from opmark.core.plain_text import lines


class GuardedStream:
    """A text stream that escapes control characters; everything else is that of the stream `behind` it.

    `written_at` is the time of the last write by the monotonic clock, in seconds.
    """

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind
        self.written_at = time.monotonic()

    def write(self, text: str) -> int:
        """Write `text` without commands to a terminal. Returns the number of characters of `text`."""
        self.behind.write(lines(text))
        self.written_at = time.monotonic()
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write each of `texts`."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


def unguarded(stream: TextIO) -> TextIO:
    """The stream behind a guard, for our own colours; the caller cleans foreign text."""
    return stream.behind if isinstance(stream, GuardedStream) else stream


def guard_streams() -> None:
    """Put standard output and error behind guards, once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, GuardedStream(stream))


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Standard output and error are behind guards within the block."""
    before = sys.stdout, sys.stderr
    guard_streams()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
