"""Run a program against the clock: write its input, read its output, and end it."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from opmark.core.errors import ContentError
from opmark.core.reading import parse_json
from opmark.leaderboards.submissions.sandbox.limits import Confined

STDERR_BYTES = 16 * 1024
CHUNK_BYTES = 1 << 16
MARK_S = 0.01
# The possible ends of a run.
FINISHED, LATE, LOUD, UNREADY = "finished", "late", "loud", "unready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The output of a run. `output` is its standard output until `end`, which is one of the four words above.

    `marks` are (bytes read, seconds since the clock started). `code` is None where the run had to be killed.
    """

    output: bytes
    errors: str
    end: str
    code: int | None
    seconds: float
    marks: tuple[tuple[int, float], ...] = ()

    def heard_at(self, offset: int) -> float:
        """The time at which the byte at `offset` arrived, in seconds."""
        return next((at for size, at in self.marks if size > offset), self.seconds)


@dataclass(slots=True, kw_only=True)
class _Ear:
    """The output so far."""

    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    marks: list[tuple[int, float]] = field(default_factory=list)
    open: int = 2


def listen(
    confined: Confined, text: bytes, *, seconds: float, output_bytes: int, ready_within_s: float | None = None
) -> Heard:
    """Start a program, write `text` to it and read its output for `seconds`; then kill everything that it started.

    With `ready_within_s` the program first prints `{"ready": true}`; then it gets the text and the clock starts.
    Output after the end is never read.
    """
    process = subprocess.Popen(
        confined.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=confined.environment,
        cwd=confined.folder,
        pass_fds=confined.descriptors,
        start_new_session=True,
    )
    ear = _Ear()
    with process, selectors.DefaultSelector() as selector:
        try:
            end, begun = FINISHED, time.monotonic()
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                os.set_blocking(stream.fileno(), False)
            selector.register(process.stdout, selectors.EVENT_READ, "output")  # type: ignore[arg-type]
            selector.register(process.stderr, selectors.EVENT_READ, "errors")  # type: ignore[arg-type]
            if ready_within_s is not None:
                end = _hear(selector, ear, None, until=begun + ready_within_s, most=CHUNK_BYTES, enough=_is_ready)
                if end != FINISHED or not _is_ready(ear):
                    _wait(process, until=time.monotonic() + 1)
                    return _heard(process, ear, end=UNREADY, seconds=time.monotonic() - begun)
                del ear.output[: ear.output.index(b"\n") + 1]
            begun = time.monotonic()
            ear.marks.clear()
            feed = _Feed(text, process.stdin, selector)
            end = _hear(selector, ear, feed, until=begun + seconds, most=output_bytes)
            if end == FINISHED:
                end = _wait(process, until=begun + seconds)
            marks = [(size, at - begun) for size, at in ear.marks]
            return _heard(process, ear, end=end, seconds=time.monotonic() - begun, marks=tuple(marks))
        finally:
            _end(process)


class _Feed:
    """Writes the program's input as fast as it reads."""

    def __init__(self, text: bytes, stream: IO[bytes] | None, selector: selectors.BaseSelector) -> None:
        assert stream is not None
        self._left = memoryview(text)
        self._stream = stream
        self._selector = selector
        selector.register(stream, selectors.EVENT_WRITE, self)

    def push(self) -> None:
        """Write a piece; close the stream when everything is written or the reader is gone."""
        try:
            self._left = self._left[os.write(self._stream.fileno(), self._left[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._left = self._left[:0]
        if not self._left:
            self._selector.unregister(self._stream)
            self._stream.close()


def _hear(
    selector: selectors.BaseSelector,
    ear: _Ear,
    feed: _Feed | None,
    *,
    until: float,
    most: int,
    enough: Callable[[_Ear], bool] | None = None,
) -> str:
    """Read until both streams are closed, the time is over, the output is too long, or `enough` holds."""
    while ear.open and not (enough and enough(ear)):
        left = until - time.monotonic()
        if left <= 0:
            return LATE
        for key, _ in selector.select(left):
            if key.data is feed and feed is not None:
                feed.push()
                continue
            piece = os.read(key.fd, CHUNK_BYTES)
            now = time.monotonic()
            if now >= until:
                return LATE
            if not piece:
                selector.unregister(key.fileobj)
                ear.open -= 1
            elif key.data == "errors":
                ear.errors += piece
                del ear.errors[:-STDERR_BYTES]
            else:
                ear.output += piece
                _mark(ear, now)
                if len(ear.output) > most:
                    return LOUD
    return FINISHED


def _mark(ear: _Ear, now: float) -> None:
    """Note when output arrived, at most 100 times per second, because a program may print single bytes."""
    if len(ear.marks) > 1 and now - ear.marks[-2][1] < MARK_S:
        ear.marks.pop()
    ear.marks.append((len(ear.output), now))


def _is_ready(ear: _Ear) -> bool:
    line, newline, _ = ear.output.partition(b"\n")
    if not newline:
        return False
    try:
        said = parse_json(bytes(line), "standard output")
    except ContentError:
        return False
    return isinstance(said, dict) and said.get("ready") is True


def _wait(process: "subprocess.Popen[bytes]", *, until: float) -> str:
    """Wait for the end of a program that closed both streams; a program that stays is late."""
    try:
        process.wait(timeout=max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return LATE
    return FINISHED


def _heard(
    process: "subprocess.Popen[bytes]",
    ear: _Ear,
    *,
    end: str,
    seconds: float,
    marks: tuple[tuple[int, float], ...] = (),
) -> Heard:
    errors = ear.errors.decode("utf-8", errors="replace")
    code = process.poll()
    return Heard(output=bytes(ear.output), errors=errors, end=end, code=code, seconds=seconds, marks=marks)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process group; in a sandbox the end of the first process ends all others."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
