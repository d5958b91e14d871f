"""stdout is data."""

import io
import json
import sys
import time
from dataclasses import dataclass

import pytest

from opmark.cli.text import terminal
from opmark.cli.text.guard import GuardedStream
from opmark.cli.text.terminal import progress_bar, progress_lines, show_error, show_json, show_table, show_text
from opmark.core.errors import ContentError


@dataclass(frozen=True)
class Row:
    name: str
    size: tuple[int, ...]


def test_json_is_only_json(capsys: pytest.CaptureFixture[str]) -> None:
    show_json([Row("µ", (1, 2))])
    shown = capsys.readouterr()
    assert json.loads(shown.out) == [{"name": "µ", "size": [1, 2]}]
    assert shown.err == ""


def test_tables_align_and_keep_every_cell(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["kernel", "latency"], [["conv [3, 3]", "41.2 µs"], ["gemm", "7 µs"]], title="Kernels")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "Kernels"
    rows = [line.strip() for line in lines if "µs" in line]
    assert rows[0].startswith("conv [3, 3]")
    assert rows[0].endswith("41.2 µs")
    assert rows[1].startswith("gemm")
    assert rows[1].endswith(" 7 µs")


def test_a_narrow_terminal_breaks_neither_names_nor_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.isatty", lambda _descriptor: True)
    monkeypatch.setenv("COLUMNS", "60")
    words = "several words that a narrow terminal puts on several lines, because they can be put there"
    show_table(("kind", "what", "interval"), [("conv-transpose", words, "2.25 ms – 2.60 ms")], left=2)
    shown = capsys.readouterr().out
    assert "conv-transpose" in shown
    assert "2.25 ms – 2.60 ms" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_what_is_piped_has_no_blanks_at_its_ends_and_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("kind", "latency"), [("conv", "1 µs"), ("a kernel of a longer name", "2 µs")], title="Kernels")
    shown = capsys.readouterr().out
    assert all(line == line.rstrip() for line in shown.splitlines())
    assert "\x1b" not in shown


def test_sentences_are_wrapped_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    text = "a sentence that is longer than a narrow terminal is wide"
    show_text(text, bullet="- ")
    assert capsys.readouterr().out == f"- {text}\n"
    monkeypatch.setattr("os.isatty", lambda _descriptor: True)
    show_text(text, bullet="- ")
    assert capsys.readouterr().out == "- a sentence that is longer\n  than a narrow terminal is\n  wide\n"


def test_figures_that_do_not_fit_follow_in_a_table_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.isatty", lambda _descriptor: True)
    monkeypatch.setenv("COLUMNS", "50")
    metrics = [f"metric-{number}" for number in range(9)]
    show_table(["split", "estimator", *metrics], [["random", "lightgbm", *metrics]], title="target", left=2)
    shown = capsys.readouterr().out
    assert all(shown.count(metric) == 2 for metric in metrics)
    assert shown.count("lightgbm") == 3
    assert shown.count("target") == 1
    assert max(map(len, shown.splitlines())) <= 50


def test_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(ContentError("bad", hint="fix"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Error: bad" in click_unstyled(shown.err)
    assert "Hint: fix" in click_unstyled(shown.err)
    show_error(ContentError("torch says \x1b[96mno\x1b[0m \x1b[2J"))
    assert click_unstyled(capsys.readouterr().err) == "Error: torch says no \\x1b[2J\n"


def click_unstyled(text: str) -> str:
    import click

    return click.unstyle(text)


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        task = progress.add_task("measuring", total=2)
        progress.advance(task)
    assert capsys.readouterr().out == ""


def test_a_pipe_gets_lines_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.progress import Progress

    progress = Progress(disable=True)
    with progress_lines(progress, every_s=0.01):
        task = progress.add_task("training", total=4)
        progress.update(task, completed=1)
        deadline = time.monotonic() + 60
        said = ""
        while "training: 1 of 4" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
        progress.update(task, completed=4)
        while "still working" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    line = next(line for line in said.splitlines() if line.startswith("training: 1 of 4"))
    assert "so far" in line
    assert "left" in line
    assert "training, still working" in said


def test_a_pipe_hears_of_a_second_pass_of_as_many_steps(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.progress import Progress

    progress = Progress(disable=True)
    task = progress.add_task("first look", total=4)
    progress.update(task, completed=4)
    progress.update(task, completed=1, total=4, description="refining")
    with progress_lines(progress, every_s=0.01):
        deadline = time.monotonic() + 60
        said = ""
        while "refining: 1 of 4" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "refining: 1 of 4" in said


def test_a_long_step_says_where_it_is_piped_that_it_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LINE_EVERY_S", 0.01)
    said = ""
    with terminal.long_step("capturing the kernels of a\x1b[31m net"):
        deadline = time.monotonic() + 60
        while "so far" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert said.startswith("capturing the kernels of a")
    assert "\x1b" not in said


def test_silence_before_a_block_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress

    stream = GuardedStream(io.StringIO())
    monkeypatch.setattr(sys, "stderr", stream)
    stream.written_at = time.monotonic() - 3600
    with progress_lines(Progress(disable=True), every_s=3600):
        deadline = time.monotonic() + 60
        while not stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert stream.getvalue().startswith("still working, ")
