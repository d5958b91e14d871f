"""The interface of an importer of published placement problems.

Each format is one file of `opmark.leaderboards.making.importers`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opmark.core.registry import Registry
from opmark.leaderboards.problem.problem import Problem

# Each has a link to every other.
DEVICES_AT_MOST = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Choices that a published file leaves open; None stands for the format's own default."""

    objective: str = "max-load"
    contiguous: bool = True
    devices: int | None = None
    bandwidth_bytes_per_s: float | None = None


class ProblemImporter(ABC):
    """The importer of one file format."""

    summary: ClassVar[str]

    @abstractmethod
    def read(self, path: Path, options: ImportOptions) -> Problem:
        """Read the problem in `path`, in the source's own unit. Raises `ContentError` naming the file and field."""


IMPORTERS: Registry[ProblemImporter] = Registry("opmark.leaderboards.making.importers", "IMPORTER", "format")
