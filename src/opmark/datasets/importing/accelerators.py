"""What vendors publish about accelerators whose tables get imported: multiprocessors and caches."""

from collections.abc import Mapping

# multiprocessors, first-level cache of one, last-level cache; from NVIDIA's architecture whitepapers
_KNOWN = {
    "H200": (132, 256 << 10, 50 << 20),
    "H100 PCIe": (114, 256 << 10, 50 << 20),
    "H100": (132, 256 << 10, 50 << 20),
    "A100": (108, 192 << 10, 40 << 20),
    "V100": (80, 128 << 10, 6 << 20),
    "L40S": (142, 128 << 10, 96 << 20),
    "L4": (58, 128 << 10, 48 << 20),
    "T4": (40, 64 << 10, 4 << 20),
}


def facts_of(name: str) -> Mapping[str, int]:
    """Facts of the accelerator that calls itself `name`; empty for an unknown one."""
    for known, (multiprocessors, level1_bytes, last_level_bytes) in _KNOWN.items():
        if known.lower() in name.lower().replace("-", " ").replace("_", " "):
            return {
                "multiprocessors": multiprocessors,
                "level1_bytes": level1_bytes,
                "last_level_bytes": last_level_bytes,
            }
    return {}
