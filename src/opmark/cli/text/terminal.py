"""Terminal output: data on stdout, progress, notes and errors on stderr."""

import contextlib
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from opmark.cli.text.guard import GuardedStream, unguarded
from opmark.cli.text.silence import in_background
from opmark.core.canonical import plain
from opmark.core.checksums import files_without
from opmark.core.errors import OpMarkError
from opmark.core.files import json_text
from opmark.core.plain_text import json_lines, one_line, without_colours
from opmark.core.units import format_duration, format_ns

if TYPE_CHECKING:
    import threading

    from rich.progress import Progress, Task

    from opmark.bench.run import progress as measuring
    from opmark.bench.suite.capturing import PlanProgress
    from opmark.core.parallel.task_map import MapProgress

MISSING = "–"
WITHOUT_CHECKSUM = "without_checksum"
_LONGEST_NAME = 24
_PIPED_WIDTH = 160
# Where no progress bar can be drawn, a line says so often how far the work is.
LINE_EVERY_S = 9.0
_GAP = 2


def show_error(error: OpMarkError) -> None:
    """Print `Error: …` and `Hint: …` on stderr."""
    show_labelled("Error:", str(error), colour="red", bold=True)
    if error.hint:
        show_labelled("Hint:", error.hint)


def show_note(message: str) -> None:
    """Print `note: …` on stderr."""
    click.echo(f"note: {_sentence(message)}", err=True)


def show_warning(message: str) -> None:
    """Print `Warning: …` on stderr."""
    show_labelled("Warning:", message, bold=True)


def show_labelled(label: str, message: str, *, colour: str = "yellow", bold: bool = False) -> None:
    """Print a coloured `label` and `message`, which may be foreign text, as one line on stderr."""
    click.echo(f"{click.style(label, fg=colour, bold=bold)} {_sentence(message)}", file=unguarded(sys.stderr))


def _sentence(message: str) -> str:
    """One line of text without the colours that other libraries put into their messages."""
    return one_line(without_colours(message))


def show_files_without_checksum() -> None:
    """Print one note about the files that were read although damage to them could not be seen."""
    paths = [str(path) for path in files_without()]
    if paths:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        verb = "has" if len(paths) == 1 else "have"
        show_note(f"{', '.join(paths[:3])}{more} {verb} no checksum: damage would not show")


def show_json(value: Any) -> None:
    """Print `value` (dataclasses allowed) as JSON on stdout; a mapping also lists files read without a checksum."""
    value = plain(value)
    if isinstance(value, dict) and files_without():
        value = {**value, WITHOUT_CHECKSUM: [str(path) for path in files_without()]}
    click.echo(json_lines(json_text(value)), nl=False, color=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """Print a table on stdout; the first `left` columns align left, the others right.

    Columns that do not fit on the terminal follow in further tables, each with the same left columns.
    """
    width = shutil.get_terminal_size().columns if os.isatty(1) else _PIPED_WIDTH
    least = [_least_width(column, [row[index] for row in rows], index >= left) for index, column in enumerate(columns)]
    for number, part in enumerate(_parts(least, left, width)):
        _show_part(
            [columns[index] for index in part],
            [[row[index] for index in part] for row in rows],
            least=[least[index] for index in part],
            title="" if number else title,
            left=left,
        )


def _least_width(column: str, cells: Sequence[str], figures: bool) -> int:
    """The width below which a figure would be separated from its unit, or a short name broken."""
    whole = cells if figures else [word for cell in cells for word in cell.split() if len(word) <= _LONGEST_NAME]
    return max(map(len, [*whole, *column.split()]), default=1)


def _parts(least: Sequence[int], left: int, width: int) -> list[list[int]]:
    """Split the columns into as few tables as fit into `width`."""
    names, figures = list(range(left)), list(range(left, len(least)))
    room = width - sum(least[index] + _GAP for index in names) - 1
    for tables in range(1, len(figures)):
        size = -(-len(figures) // tables)
        parts = [figures[start : start + size] for start in range(0, len(figures), size)]
        if all(sum(least[index] + _GAP for index in part) <= room for part in parts):
            return [[*names, *part] for part in parts]
    return [[*names, index] for index in figures] or [names]


def _show_part(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, least: Sequence[int], title: str, left: int
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(one_line(title)) if title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    for index, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if index >= left else "left"
        table.add_column(Text(one_line(column)), justify=justify, overflow="fold", min_width=least[index])
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    if os.isatty(1):
        Console(file=unguarded(sys.stdout), no_color="NO_COLOR" in os.environ, highlight=False).print(table)
        return
    console = Console(no_color=True, width=_PIPED_WIDTH, highlight=False)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_text(text: str, *, bullet: str = "") -> None:
    """Print sentences on stdout: wrapped between words on a terminal, on one line elsewhere."""
    if os.isatty(1):
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, initial_indent=bullet, subsequent_indent=" " * len(bullet))
    else:
        text = f"{bullet}{text}"
    click.echo(text)


def seconds_text(seconds: float | None) -> str:
    """A duration with three significant digits, or a dash."""
    return MISSING if seconds is None else format_ns(seconds * 1e9)


def share_text(share: float | None) -> str:
    """A share in percent with one decimal, or a dash."""
    return MISSING if share is None else f"{share:.1%}"


def decimals_text(value: float | None) -> str:
    """A score or a correlation with three decimals, or a dash."""
    return MISSING if value is None else f"{value:.3f}"


@contextlib.contextmanager
def progress_bar(*, transient: bool = False) -> "Iterator[Progress]":
    """A progress display with the time left, on stderr; where stderr is not a terminal, a line every few seconds.

    The time left is a task's field `left_s`, seconds or a function that tells them, or else estimated from the pace so
    far.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            left_s = _left_s(task)
            return super().render(task) if left_s is None else Text(format_duration(left_s), style="progress.remaining")

    class Doing(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(one_line(task.description))  # names of files, problems and networks are foreign text

    console = Console(file=unguarded(sys.stderr), no_color="NO_COLOR" in os.environ)
    columns = (
        Doing(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeLeft(),
        TextColumn("left"),
    )
    progress = Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)
    with progress, contextlib.nullcontext() if console.is_terminal else progress_lines(progress):
        yield progress


@contextlib.contextmanager
def long_step(doing: str) -> "Iterator[Callable[[str], None]]":
    """Show on stderr that one step goes on: a live line on a terminal, a line every few seconds elsewhere.

    The block gets a function that says what is done now.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(file=unguarded(sys.stderr), no_color="NO_COLOR" in os.environ)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task(one_line(doing), total=None)
    with progress, contextlib.nullcontext() if console.is_terminal else progress_lines(progress, LINE_EVERY_S):
        yield lambda now: progress.update(task, description=one_line(now))


@contextlib.contextmanager
def progress_lines(progress: "Progress", every_s: float = LINE_EVERY_S) -> Iterator[None]:
    """Print a line about the last unfinished task on stderr every `every_s` seconds within the block."""
    # the stream of the caller: a test, for one, gives this thread another one
    stream = sys.stderr
    begun = time.monotonic()
    # silence before the block counts too: loading modules takes seconds on a busy machine
    last_words = stream.written_at if isinstance(stream, GuardedStream) else begun

    def print_lines(over: "threading.Event") -> None:
        wait_s = max(0.0, last_words + every_s - begun)
        while not over.wait(wait_s):
            wait_s = every_s
            # rich calls a task finished for good, but a run may begin another pass of as many looks
            open_tasks = [task for task in progress.tasks if task.total is None or task.completed < task.total]
            with contextlib.suppress(ValueError, OSError):  # the stream may be closed at the end
                last = [*progress.tasks, *open_tasks][-1:]
                click.echo(_progress_line(last[0] if last else None, time.monotonic() - begun), file=stream)

    with in_background(print_lines):
        yield


def _left_s(task: "Task") -> float | None:
    told: float | Callable[[], float | None] | None = task.fields.get("left_s")
    return told() if callable(told) else told


def _progress_line(task: "Task | None", spent_s: float) -> str:
    spent = f"{format_duration(spent_s)} so far"
    if task is None:
        return f"still working, {spent}"
    if task.total is not None and task.completed >= task.total:
        return f"{one_line(task.description)}, still working, {spent}"
    done = "" if task.total is None else f": {task.completed:,.0f} of {task.total:,.0f}"
    left_s = _left_s(task)
    if left_s is None and task.total and task.completed:
        # the pace of this task: others may have ended before it began
        left_s = (task.elapsed or spent_s) * (task.total / task.completed - 1)
    left = "" if left_s is None else f", {format_duration(left_s)} left"
    return f"{one_line(task.description)}{done}, {spent}{left}"


@contextlib.contextmanager
def run_progress(name: str) -> "Iterator[Callable[[measuring.RunProgress], None]]":
    """A progress bar called `name`, as the function that a measuring run reports its progress to."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def show(now: "measuring.RunProgress") -> None:
            bar.update(task, completed=now.done, total=now.total, description=now.doing or name, left_s=now.left_s)

        yield show


@contextlib.contextmanager
def map_progress(name: str) -> "Iterator[Callable[[MapProgress], None]]":
    """A progress bar called `name`, as the function that independent tasks report their progress to."""
    with progress_bar(transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(now: "MapProgress") -> None:
            bar.update(task, completed=now.done, total=now.total, left_s=now.left_s)

        yield show


@contextlib.contextmanager
def plan_progress() -> "Iterator[Callable[[PlanProgress], None]]":
    """A progress bar of planning, as the function that a plan reports its progress to."""
    with progress_bar(transient=True) as bar:
        task = bar.add_task("planning", total=None)

        def show(now: "PlanProgress") -> None:
            bar.update(task, completed=now.done, total=now.total, description=now.doing, left_s=now.left_s)

        yield show
