"""This machine, as it would be recorded beside a measurement."""

from dataclasses import dataclass

from opmark.bench.run.environment import probe
from opmark.bench.worker.backend import BACKENDS
from opmark.core.environment import Environment
from opmark.core.errors import UnavailableError
from opmark.studies.machine.gpus import Gpu, gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The device's slug, its facts with those of every runtime that works, and its GPUs."""

    device: str
    environment: Environment
    gpus: tuple[Gpu, ...]


def this_machine() -> Machine:
    """Probe this machine; nothing is measured."""
    working = []
    for name in BACKENDS.names():
        try:
            backend = BACKENDS.load(name)
        except UnavailableError:
            continue
        if backend.unavailable() is None:
            working.append(backend)
    environment = probe(working)
    return Machine(device=environment.device, environment=environment, gpus=gpus())
