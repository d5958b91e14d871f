"""Reads published placement problems; one file of `opmark.leaderboards.making.importers` per format."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opmark.core.registry import Registry
from opmark.leaderboards.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the file leaves open. `devices` and `bandwidth_bytes_per_s` are the format's own defaults where None."""

    objective: str = "max-load"
    contiguous: bool = True
    devices: int | None = None
    bandwidth_bytes_per_s: float | None = None


class Importer(ABC):
    """One format."""

    summary: ClassVar[str]

    @abstractmethod
    def read(self, path: Path, wish: Wish) -> Problem:
        """The problem in `path`, in the source's own unit. Raises `ContentError` naming the file and the field."""


IMPORTERS: Registry[Importer] = Registry("opmark.leaderboards.making.importers", "IMPORTER", "format")
