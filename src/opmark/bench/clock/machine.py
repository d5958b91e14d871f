"""Facts about this machine: processors, caches, device slug and hypervisor."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from opmark.core.errors import ContentError
from opmark.core.hardware.processor import flags, processor
from opmark.core.reading import parse_json

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_STAT = Path("/proc/stat")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caches:
    """Bytes of a core's level-1 data cache and level-2 cache, and of the last level; 0 for a level that is missing."""

    level1_bytes: int = 0
    level2_bytes: int = 0
    last_level_bytes: int = 0


@cache
def caches() -> Caches:
    """The caches of the first processor, as the operating system reports them."""
    sizes: dict[int, int] = {}
    for folder in sorted(_CACHES.glob("index*")):
        if _read(folder / "type") != "Instruction":
            level, size = _read(folder / "level"), parse_cache_size(_read(folder / "size"))
            if level.isdecimal() and size:
                sizes[int(level)] = size
    if not sizes:
        # Unknown: use the sizes of an ordinary core, because the measuring rules need numbers.
        return Caches(level1_bytes=32 << 10, level2_bytes=1 << 20, last_level_bytes=32 << 20)
    return Caches(
        level1_bytes=sizes.get(1, 0),
        level2_bytes=sizes.get(2, 0) or max(sizes.values()),
        last_level_bytes=max(sizes.values()),
    )


def parse_cache_size(text: str) -> int:
    """The bytes of a size from sysfs, such as `32768K`; 0 for other text."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _UNITS.get(match[2], 1) if match else 0


def device_slug() -> str:
    """Return vendor, family, model, stepping, processors and last-level cache: `amd-26-2-1-2vcpu-l3-32m`."""
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
    """The number of processors online."""
    return os.cpu_count() or 1


def governor() -> str | None:
    """The frequency governor of the first processor; None if unknown."""
    return _read(_GOVERNOR) or None


@cache
def hypervisor() -> str:
    """The vendor of the hypervisor; `none` outside a virtual machine."""
    if "hypervisor" not in flags():
        return "none"
    try:
        listing = subprocess.run(("lscpu", "-J"), capture_output=True, check=True, timeout=10).stdout
        fields = {item["field"]: item["data"] for item in _flat(parse_json(listing, "lscpu")["lscpu"])}
    except (OSError, subprocess.SubprocessError, ContentError, TypeError, KeyError):
        fields = {}
    return fields.get("Hypervisor vendor:") or "unknown"


def stolen_share() -> float | None:
    """The share of all processor time since start that the hypervisor gave to others; None if unknown."""
    times = processor_times()
    return round(times[0] / times[1], 6) if times else None


def processor_times() -> tuple[int, int] | None:
    """The stolen and the total processor time since start, in ticks; None if unknown.

    The hypervisor gave the stolen time to others.
    """
    fields = _read(_STAT).split("\n")[0].split()[1:9]
    times = [int(field) for field in fields if field.isdecimal()]
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
