"""A kind of file that OpMark reads, for the tests of readers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Subject:
    """A kind of file. `make` writes an example into a folder and returns its path; `read` gives what was loaded.

    Where `guarded`, a flipped bit must never change what is loaded. A short run tries so many `cases`.
    """

    name: str
    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    guarded: bool = False
    cases: int = 40


def text_file(name: str, text: str, *beside: tuple[str, str]) -> Callable[[Path], Path]:
    """A function that writes `text` into the file `name`, and the files `beside` it."""

    def make(folder: Path) -> Path:
        for place, content in ((name, text), *beside):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return folder / name

    return make
