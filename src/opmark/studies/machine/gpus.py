"""List the GPUs of this machine through their driver, without a framework."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opmark.bench.clock.gpu import query_gpus

_FIELDS = ("name", "memory.total", "driver_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver reports it."""

    name: str
    memory_bytes: int
    driver: str


def gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that `nvidia-smi` lists; empty if it is missing or fails."""
    return parse_gpus(query_gpus(_FIELDS))


def parse_gpus(rows: Iterable[Sequence[str]]) -> tuple[Gpu, ...]:
    """The GPUs in rows of `nvidia-smi` (memory in MiB), without rows of another form."""
    return tuple(
        Gpu(name=row[0], memory_bytes=int(row[1]) << 20, driver=row[2])
        for row in rows
        if len(row) == len(_FIELDS) and row[1].isdigit()
    )
