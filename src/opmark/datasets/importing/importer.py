"""The interface of an importer of published tables; each file of `opmark.datasets.importers` implements one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opmark.core.kernels.kernel import Kernel
from opmark.core.registry import Registry
from opmark.kinds import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The runtime of a row according to its file; `hardware` is the device's name there, empty if it has none."""

    backend: str
    provider: str = ""
    version: str = ""
    hardware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRow:
    """One row of a published table: a kernel, a network (blocks count as networks), or the reason to leave it out.

    `where` names file and line.
    """

    where: str
    runtime: Runtime
    latency_ns: float = 0.0
    kernel: Kernel | None = None
    network: str = ""
    family: str = ""
    left_out: str = ""


class TableImporter(ABC):
    """One published format. Latencies become hot labels, because no other benchmark rotates copies through memory.

    `label` is the authors' definition of a latency, as the end of "a latency here is …"; `samples` is the number of
    samples behind a label.
    """

    title: ClassVar[str]
    source: ClassVar[str]
    attribution: ClassVar[str]
    licence: ClassVar[str]
    label: ClassVar[str]
    samples: ClassVar[int]

    @abstractmethod
    def entries(self, path: Path) -> Iterator[ImportedRow]:
        """Read every row of the file. Raises `ContentError` naming file, line and column of the first bad one."""


def kernel_with(kind: str, **parameters: object) -> Kernel:
    """Make a kernel of `kind`; parameters that are not given have their defaults."""
    family = KINDS.load(kind)
    return family.kernel(family.parameters(**parameters))


IMPORTERS: Registry[TableImporter] = Registry("opmark.datasets.importers", "IMPORTER", "import format")
