"""The facts about this machine: its device name, the environment recorded with every measurement, and its GPUs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opmark.bench.clock.gpu import gpu_slug, query_gpus
from opmark.bench.clock.machine import device_slug
from opmark.bench.run.environment import probe
from opmark.bench.worker.backend import BACKENDS
from opmark.core.errors import UnavailableError
from opmark.core.measurements.environment import Environment

_FIELDS = ("name", "memory.total", "driver_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver describes it."""

    name: str
    memory_bytes: int
    driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """The device name, the facts of the machine and of every working runtime, and the GPUs."""

    device: str
    environment: Environment
    gpus: tuple[Gpu, ...]


def this_machine() -> MachineFacts:
    """Probe this machine without measuring anything."""
    working = []
    for name in BACKENDS.names():
        try:
            backend = BACKENDS.load(name)
        except UnavailableError:
            continue
        if backend.unavailable() is None:
            working.append(backend)
    environment = probe(working)
    return MachineFacts(device=environment.device, environment=environment, gpus=gpus())


def device_names() -> tuple[str, ...]:
    """The names under which this machine is measured: that of its processor, then those of its GPUs."""
    return (device_slug(), *dict.fromkeys(gpu_slug(gpu.name) for gpu in gpus()))


def is_this_machine(device: str) -> bool:
    """True if `device` names this machine's processor or one of its GPUs."""
    return device == device_slug() or device in device_names()


def gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that `nvidia-smi` lists; empty if it is missing or fails."""
    return parse_gpus(query_gpus(_FIELDS))


def parse_gpus(rows: Iterable[Sequence[str]]) -> tuple[Gpu, ...]:
    """The GPUs in rows of `nvidia-smi` (memory in MiB), without rows of another form."""
    return tuple(
        Gpu(name=row[0], memory_bytes=int(row[1]) << 20, driver=row[2])
        for row in rows
        if len(row) == len(_FIELDS) and row[1].isdecimal()
    )
