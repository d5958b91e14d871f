"""What this machine is: the device slug, the facts that must agree, and the facts worth noting."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opmark.bench.clock.scheduling import cpu_pressure, may_use_fifo
from opmark.bench.worker.backend import Backend
from opmark.core.environment import Environment, Fact

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CPUINFO = Path("/proc/cpuinfo")
_STAT = Path("/proc/stat")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# Instruction sets that change which kernels a runtime picks.
_DECISIVE_FLAGS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "avx_vnni"),
    *("amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "sve", "bf16", "i8mm"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """Bytes of one core's level 1 (data) and level 2 cache, and of the last level; 0 where there is none."""

    level1_bytes: int = 0
    level2_bytes: int = 0
    last_level_bytes: int = 0


@cache
def caches() -> Caches:
    """The caches that the first processor sees, as the kernel of the operating system reports them."""
    sizes: dict[int, int] = {}
    for folder in sorted(_CACHES.glob("index*")):
        if _read(folder / "type") != "Instruction":
            level, size = _read(folder / "level"), parse_cache_size(_read(folder / "size"))
            if level.isdigit() and size:
                sizes[int(level)] = size
    if not sizes:
        # Unknown: the sizes of an ordinary core, so that the rules still have numbers to work with.
        return Caches(level1_bytes=32 << 10, level2_bytes=1 << 20, last_level_bytes=32 << 20)
    return Caches(
        level1_bytes=sizes.get(1, 0),
        level2_bytes=sizes.get(2, 0) or max(sizes.values()),
        last_level_bytes=max(sizes.values()),
    )


def parse_cache_size(text: str) -> int:
    """Bytes in sysfs's `32768K`; 0 if it is something else."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _UNITS.get(match[2], 1) if match else 0


@cache
def processor() -> Mapping[str, str]:
    """The first entry of /proc/cpuinfo; where that is missing, what Python knows."""
    text = _read(_CPUINFO)
    first = text.split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    return found or {"model name": platform.processor() or platform.machine()}


def flags() -> frozenset[str]:
    """The processor's instruction sets."""
    known = processor()
    return frozenset((known.get("flags") or known.get("Features") or "").split())


def block_width() -> int:
    """Floats in a vector register: the channel block of ONNX Runtime's blocked convolutions here."""
    return 16 if "avx512f" in flags() else 8


def device_slug() -> str:
    """Such as `amd-26-2-1-2vcpu-l3-32m`: vendor, family, model, stepping, processors, last-level cache."""
    known = processor()
    vendors = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
    if "cpu family" in known:
        vendor = vendors.get(known.get("vendor_id", ""), "x86")
        identity = f"{vendor}-{known['cpu family']}-{known.get('model', '0')}-{known.get('stepping', '0')}"
    elif "CPU part" in known:
        identity = f"arm-{known.get('CPU implementer', '0x0')}-{known['CPU part']}-{known.get('CPU variant', '0x0')}"
    else:
        identity = re.sub(r"[^a-z0-9]+", "-", known["model name"].lower()).strip("-") or "cpu"
    megabytes = caches().last_level_bytes >> 20
    return f"{identity}-{processors()}vcpu-l3-{megabytes}m"


def processors() -> int:
    """How many processors this machine has online."""
    return os.cpu_count() or 1


def probe(backends: Iterable[Backend]) -> Environment:
    """This machine now, with the facts of the runtimes that will be measured."""
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
    return Environment(device=measured_device(measured), checked=checked, noted=noted())


def measured_device(backends: Sequence[Backend]) -> str:
    """The device that `backends` run on: this machine's processor unless all of them run on one other."""
    devices = {backend.device() or device_slug() for backend in backends}
    return devices.pop() if len(devices) == 1 else device_slug()


def noted() -> dict[str, Fact]:
    """What may differ between two runs and is worth knowing."""
    known = processor()
    return {
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "microcode": known.get("microcode", ""),
        "governor": _read(_GOVERNOR) or None,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "fifo": may_use_fifo(),
        "pressure": cpu_pressure(),
        "stolen_share": stolen_share(),
        "flags": " ".join(sorted(flags())),
    }


@cache
def hypervisor() -> str:
    """`none`, or who runs the machine this one is a guest of."""
    if "hypervisor" not in flags():
        return "none"
    try:
        listing = subprocess.run(("lscpu", "-J"), capture_output=True, check=True, timeout=10).stdout
        fields = {item["field"]: item["data"] for item in _flat(json.loads(listing)["lscpu"])}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        fields = {}
    return fields.get("Hypervisor vendor:") or "unknown"


def stolen_share() -> float | None:
    """The part of all processor time since start that the hypervisor gave to others; None where unknown."""
    times = processor_times()
    return round(times[0] / times[1], 6) if times else None


def processor_times() -> tuple[int, int] | None:
    """The processor time that the hypervisor gave to others, and all of it, since start, in ticks; None if unknown."""
    fields = _read(_STAT).split("\n")[0].split()[1:9]
    times = [int(field) for field in fields if field.isdigit()]
    total = sum(times)
    return (times[7], total) if len(times) == 8 and total else None


def _flat(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry
        yield from _flat(entry.get("children", []))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
