"""A long command without output says on standard error that it works."""

import io
import sys
import threading

import click
import pytest

from opmark.cli.main import cli
from opmark.cli.text.guard import GuardedStream
from opmark.cli.text.silence import broken_silence, may_be_silent


class Heard(io.StringIO):
    """Standard error that knows when somebody has written to it."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.written, self.terminal = threading.Event(), terminal

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)

    def isatty(self) -> bool:
        return self.terminal


def context() -> click.Context:
    ctx = click.Context(cli)
    ctx.invoked_subcommand = "datasets"
    return ctx


def test_silence_is_broken_with_the_name_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(sys, "stderr", GuardedStream(heard))
    with broken_silence(context(), every_s=0.02):
        assert heard.written.wait(60)
    assert heard.getvalue().splitlines()[0].startswith("opmark datasets: still working, ")


def test_nobody_is_told_what_is_seen_or_soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, every_s in ((True, 0.001), (False, 3600.0)):
        heard = Heard(terminal)
        monkeypatch.setattr(sys, "stderr", GuardedStream(heard))
        with broken_silence(context(), every_s=every_s):
            assert not heard.written.wait(0.02)
        assert heard.getvalue() == ""


def test_a_server_waits_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(sys, "stderr", GuardedStream(heard))
    ctx = context()
    may_be_silent(ctx)
    with broken_silence(ctx, every_s=0.001):
        assert not heard.written.wait(0.02)


def test_a_closed_stream_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(sys, "stderr", GuardedStream(heard))
    with broken_silence(context(), every_s=0.001):
        heard.close()
        assert not threading.Event().wait(0.02)


def test_output_delays_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = Heard()
    stream = GuardedStream(behind)
    before = stream.written_at
    stream.write("x")
    assert stream.written_at > before


def test_the_whole_command_is_named_and_its_arguments_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(sys, "stderr", GuardedStream(heard))
    ctx = click.Context(cli)
    ctx.invoked_subcommand, ctx.args = "leaderboards", ["check", "submit", "--seed", "1"]
    with broken_silence(ctx, every_s=0.02):
        assert heard.written.wait(60)
    assert heard.getvalue().splitlines()[0].startswith("opmark leaderboards check: still working, ")
