"""Whatever is printed, a terminal receives text: results, errors of click, warnings and tracebacks."""

import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opmark.cli.main import LazyGroup
from opmark.cli.text.guard import GuardedStream, guarded_streams, unguarded
from opmark.cli.text.terminal import progress_bar, show_json, show_note, show_table, show_warning
from opmark.core.errors import ContentError
from opmark.core.plain_text import one_line

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m[bold red]x"


def test_a_guard_is_the_stream_in_everything_else() -> None:
    behind = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    stream = GuardedStream(behind)
    stream.writelines(["a\n", EVIL])
    stream.flush()
    assert "\x1b" not in behind.buffer.getvalue().decode()
    assert (stream.encoding, stream.isatty(), unguarded(stream)) == ("utf-8", False, behind)  # type: ignore[arg-type]


def test_guards_are_set_once_and_taken_away_again() -> None:
    before = sys.stdout
    with guarded_streams():
        inner = sys.stdout
        with guarded_streams():
            assert sys.stdout is inner
        assert isinstance(inner, GuardedStream)
    assert sys.stdout is before


def printed(call: object) -> str:
    """The output of a command that makes `call`, on both streams."""

    class OneCommand(LazyGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            return click.command()(call)  # type: ignore[arg-type]

    @click.group(cls=OneCommand)
    def main() -> None:
        """Test group."""

    found = CliRunner().invoke(main, ["x"])
    return found.output


def _raise() -> None:
    raise ContentError(f"{EVIL}\nError: second", where=EVIL, hint=EVIL)


def _usage() -> None:
    raise click.UsageError(EVIL)


def _bar() -> None:
    with progress_bar() as bar:
        bar.add_task(EVIL, total=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: click.echo(EVIL),
        lambda: click.echo(EVIL, err=True),
        lambda: show_note(EVIL),
        lambda: show_warning(EVIL),
        lambda: show_json({EVIL: EVIL}),
        lambda: show_table((EVIL, "n"), [(EVIL, "1")], title=EVIL),
        _raise,
        _usage,
        _bar,
    ],
)
def test_no_way_of_printing_lets_a_command_through(call: object) -> None:
    text = printed(call)
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(text)
    assert call is _bar or "[bold red]x" in text


def test_an_error_is_one_line_and_cannot_pretend_to_be_two() -> None:
    assert [line.partition(" ")[0] for line in printed(_raise).splitlines()] == ["Error:", "Hint:"]


def test_a_traceback_and_a_warning_are_guarded_too() -> None:
    code = f"""
import warnings, sys
from opmark.cli.text.guard import guard_streams
guard_streams()
warnings.warn({EVIL!r})
raise RuntimeError({EVIL!r})
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RuntimeError" in found.stderr
    assert "\x1b" not in found.stderr


def test_the_names_of_files_are_guarded_on_a_real_terminal(tmp_path: Path) -> None:
    """A pseudo-terminal, because click removes escape sequences itself where there is none."""
    import pty

    name = tmp_path / f"a{EVIL.replace('/', '')}.onnx"
    name.write_bytes(b"no model")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "opmark", "models", "show", str(name)]
    subprocess.run(command, stdout=follower, stderr=follower, stdin=follower, check=False)
    os.close(follower)
    received = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        received += piece
    os.close(leader)
    text = received.decode()
    assert "\\x1b]0;owned" in text
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_the_name_of_a_task_is_guarded_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is drawn past the guard, for its colours."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(sys, "stderr", screen)
    with progress_bar() as bar:
        bar.add_task(EVIL, total=1)
    text = screen.getvalue()
    assert one_line(EVIL) in text
    assert not {"\x07", "\u202e", "\x9b"} & set(text)
