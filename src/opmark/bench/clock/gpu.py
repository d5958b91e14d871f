"""The GPU as its driver's own tool describes it: a device slug, and the facts that must agree."""

import csv
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

from opmark.core.environment import Fact

# Asked of nvidia-smi → what the fact is called. None of them changes by itself.
_FIELDS = {
    "name": "gpu",
    "driver_version": "driver",
    "memory.total": "memory_mib",
    "clocks.max.sm": "most_sm_mhz",
    "clocks.max.mem": "most_memory_mhz",
    "clocks.applications.graphics": "application_sm_mhz",
    "power.limit": "power_limit_w",
    "ecc.mode.current": "ecc",
    "mig.mode.current": "mig",
    "persistence_mode": "persistence",
    "compute_mode": "compute_mode",
}
_FLAGS = {"Enabled": True, "Disabled": False}


@cache
def card_facts(index: int = 0) -> Mapping[str, Fact]:
    """Facts of the GPU with that number; none where `nvidia-smi` is missing or fails."""
    text = _asked(",".join(_FIELDS), index)
    return parse_card(text) if text else {}


def parse_card(listing: str) -> dict[str, Fact]:
    """The first line of `nvidia-smi`'s CSV without units; None for what the card does not tell.

    Empty where the line has another number of fields.
    """
    rows = list(csv.reader(listing.strip().splitlines()[:1]))
    if not rows or len(rows[0]) != len(_FIELDS):
        return {}
    return {name: _fact(text.strip()) for name, text in zip(_FIELDS.values(), rows[0], strict=True)}


def card_slug(name: str) -> str:
    """Such as `nvidia-h200` for `NVIDIA H200`; the maker's name is put first where it is missing."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words if words.startswith("nvidia") else f"nvidia-{words or 'gpu'}"


def _fact(text: str) -> Fact:
    # `[N/A]`, `[Not Supported]`, `[Deprecated]`.
    if not text or text == "N/A" or text.startswith("["):
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text else number


def _asked(fields: str, index: int) -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = (tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--id={index}")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
