"""Facts about the processor of this machine."""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@cache
def processor() -> Mapping[str, str]:
    """The first entry of /proc/cpuinfo, or Python's own answer if there is none."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    first = text.split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in pairs if name.strip()}
    return found or {"model name": platform.processor() or platform.machine()}


def flags() -> frozenset[str]:
    """The processor's instruction sets."""
    known = processor()
    return frozenset((known.get("flags") or known.get("Features") or "").split())


def block_width() -> int:
    """The floats in a vector register: the channel block of ONNX Runtime's blocked convolutions."""
    return 16 if "avx512f" in flags() else 8
