"""What a reader of other people's tables must do; one file of `opmark.datasets.importers` per format."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opmark.core.kernel import Kernel
from opmark.core.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What ran a row, as its file says; `hardware` is the device's own name there, empty where the file has none."""

    backend: str
    provider: str = ""
    version: str = ""
    hardware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a published table: a kernel, a network (a block counts as one), or what is left out and why.

    `where` names file, line and, for what is left out, nothing more.
    """

    where: str
    runtime: Runtime
    latency_ns: float = 0.0
    kernel: Kernel | None = None
    network: str = ""
    family: str = ""
    left_out: str = ""


class Importer(ABC):
    """One published format. Latencies become hot labels: nobody else rotates copies through memory."""

    title: ClassVar[str]
    source: ClassVar[str]
    attribution: ClassVar[str]
    licence: ClassVar[str]
    # What the authors call a latency, as the end of "a latency here is …".
    label: ClassVar[str]
    # How many samples stand behind a label.
    samples: ClassVar[int]

    @abstractmethod
    def entries(self, path: Path) -> Iterator[Entry]:
        """Every row of the file. Raises `ContentError` naming file, line and column of the first bad one."""


IMPORTERS: Registry[Importer] = Registry("opmark.datasets.importers", "IMPORTER", "import format")
