"""Break the silence of long commands where nobody sees a progress bar: a line on standard error says that they work.

Most long steps have progress lines of their own, which say more. This is for every other one.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import click

from opmark.cli.text.guard import GuardedStream
from opmark.core.units import format_duration

SILENT_FOR_S = 10.0
_LISTENING = "opmark.listening"


@contextlib.contextmanager
def broken_silence(ctx: click.Context, *, every_s: float = SILENT_FOR_S) -> Iterator[None]:
    """Print that the subcommand of `ctx` works when nothing was printed for `every_s` seconds, except on a terminal."""
    stream = sys.stderr
    if stream.isatty() or not isinstance(stream, GuardedStream):
        yield
        return
    last_words, words = _last_words(time.monotonic()), partial(_command_words, ctx, tuple(ctx.args))
    with in_background(lambda over: _watch(words, stream, last_words, over, every_s)):
        yield


@contextlib.contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `work` in a thread beside the block; the event that it gets tells the end of the block."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def may_be_silent(ctx: click.Context) -> None:
    """Say that this command waits for others until somebody ends it, so that its silence means nothing."""
    ctx.meta[_LISTENING] = True


def _last_words(begun: float) -> Callable[[], float]:
    """A function that gives the time of the last output of this process, or of its start."""
    streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, GuardedStream)]
    return lambda: max([begun, *(stream.written_at for stream in streams)])


def _watch(
    words: Callable[[], str],
    stream: GuardedStream,
    last_words: Callable[[], float],
    over: threading.Event,
    every_s: float,
) -> None:
    begun = said = last_words()
    while not over.wait(max(0.0, max(said, last_words()) + every_s - time.monotonic())):
        now = time.monotonic()
        if now - last_words() < every_s:
            continue
        said = now  # also where the line cannot be printed
        if not (command := words()):
            return
        with contextlib.suppress(ValueError, OSError):  # the stream may be closed at the end
            stream.write(f"{command}: still working, {format_duration(now - begun)} so far\n")
            stream.flush()


def _command_words(ctx: click.Context, rest: Sequence[str]) -> str:
    """The words that name the running command, such as `opmark leaderboards check`; empty where it may be silent.

    `rest` follows the first word of the command line.
    """
    if ctx.meta.get(_LISTENING):
        return ""
    words, command = ["opmark"], ctx.command
    for word in (ctx.invoked_subcommand or "", *rest):
        found = command.get_command(ctx, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        words, command = [*words, word], found
    return " ".join(words)
