"""Record the environment of a run: the facts of this machine and of its runtimes."""

import os
import platform
import sys
from collections.abc import Iterable, Sequence

from opmark.bench.clock.machine import (
    caches,
    device_slug,
    governor,
    hypervisor,
    processors,
    stolen_share,
)
from opmark.bench.clock.scheduling import cpu_pressure, may_use_fifo
from opmark.bench.worker.backend import Backend
from opmark.core.hardware.processor import flags, processor
from opmark.core.measurements.environment import Environment, Fact

# Instruction sets that change which kernels a runtime picks.
_DECISIVE_FLAGS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx_vnni"),
    *("amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "sve", "bf16", "i8mm"),
)


def probe(backends: Iterable[Backend]) -> Environment:
    """The environment of this machine now, with the facts of `backends`; caches are those of the measured device."""
    known = processor()
    here = caches()
    decisive = flags()
    checked: dict[str, Fact] = {
        "cpu": known.get("model name", ""),
        "device": device_slug(),
        "processors": processors(),
        "level1_bytes": here.level1_bytes,
        "level2_bytes": here.level2_bytes,
        "last_level_bytes": here.last_level_bytes,
        "instruction_sets": " ".join(name for name in _DECISIVE_FLAGS if name in decisive),
        "hypervisor": hypervisor(),
        "operating_system": platform.system(),
    }
    measured = tuple(backends)
    for backend in measured:
        checked |= {f"{backend.name}.{name}": value for name, value in backend.facts().items()}
    device = measured_device(measured)
    for backend in measured:
        if backend.device() == device:
            checked |= backend.hardware()
    return Environment(device=device, checked=checked, noted=noted())


def measured_device(backends: Sequence[Backend]) -> str:
    """The device of `backends`: this machine's processor, unless all of them run on one other device."""
    devices = {backend.device() or device_slug() for backend in backends}
    return devices.pop() if len(devices) == 1 else device_slug()


def noted() -> dict[str, Fact]:
    """The facts that may differ between two runs of one journal."""
    known = processor()
    return {
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "microcode": known.get("microcode", ""),
        "governor": governor(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "fifo": may_use_fifo(),
        "pressure": cpu_pressure(),
        "stolen_share": stolen_share(),
        "flags": " ".join(sorted(flags())),
    }
