"""What the terminal shows: data on stdout, progress and errors on stderr."""

import contextlib
import os
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from opmark.core.errors import OpMarkError
from opmark.core.files import json_text
from opmark.core.units import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress

_LONGEST_NAME = 24
_PIPED_WIDTH = 160
_GAP = 2
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def show_error(error: OpMarkError) -> None:
    """`Error: …` and `Hint: …` on stderr."""
    click.echo(f"{click.style('Error:', fg='red', bold=True)} {error}", err=True)
    if error.hint:
        click.echo(f"{click.style('Hint:', fg='yellow')} {error.hint}", err=True)


def show_json(value: Any) -> None:
    """`value` (dataclasses allowed) as JSON on stdout."""
    click.echo(json_text(value), nl=False, color=False)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", left: int = 1) -> None:
    """A table on stdout; the first `left` columns align left, the rest right.

    Figures that a terminal is too narrow for follow in further tables, beside the same left columns.
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
    """What a narrow terminal must not break: figures from their units, and a name in its middle."""
    whole = cells if figures else [word for cell in cells for word in cell.split() if len(word) <= _LONGEST_NAME]
    return max(map(len, [*whole, *column.split()]), default=1)


def _parts(least: Sequence[int], left: int, width: int) -> list[list[int]]:
    """The columns of each table: all at once where they fit in `width`, else in as few tables as hold them."""
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

    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, collapse_padding=True)
    for index, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if index >= left else "left"
        table.add_column(column, justify=justify, overflow="fold", min_width=least[index])
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if os.isatty(1):
        Console(no_color="NO_COLOR" in os.environ, highlight=False).print(table)
        return
    console = Console(no_color=True, width=_PIPED_WIDTH, highlight=False)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_text(text: str, *, bullet: str = "") -> None:
    """Sentences on stdout: wrapped between words on a terminal, one line elsewhere."""
    if os.isatty(1):
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, initial_indent=bullet, subsequent_indent=" " * len(bullet))
    else:
        text = f"{bullet}{text}"
    click.echo(text)


def counted(number: int, noun: str) -> str:
    """`1 pair`, `1,204 pairs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextlib.contextmanager
def progress_bar(*, transient: bool = False) -> "Iterator[Progress]":
    """A progress display with time left on stderr; silent where stderr is not a terminal.

    A task updated with `left_s` shows that as the time left, any other what its pace so far suggests.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            left_s = task.fields.get("left_s")
            return super().render(task) if left_s is None else Text(format_duration(left_s), style="progress.remaining")

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeLeft(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=transient, disable=not console.is_terminal) as progress:
        yield progress
