"""NVIDIA GPUs: the facts that their driver reports, and their processor clock."""

import csv
import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from opmark.core.measurements.environment import Fact
from opmark.core.measurements.estimate import median

# Field of nvidia-smi → name of the fact. None of them changes by itself.
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
_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK = 1  # NVML_CLOCK_SM
# At most this share of samples is discarded for its clock. If there are more, all are kept and the row is flagged.
MOST_DISCARDED = 0.2
# A clock within this share of the median counts as usual: GPUs change it in steps of 15 MHz at about 1,500.
_TOLERANCE = 0.015


@cache
def gpu_facts(index: int = 0) -> Mapping[str, Fact]:
    """The facts of GPU number `index`; empty if `nvidia-smi` is missing or fails."""
    rows = query_gpus(tuple(_FIELDS), index)
    return parse_facts(rows[0]) if rows else {}


def parse_facts(row: Sequence[str]) -> dict[str, Fact]:
    """The facts in one row of `nvidia-smi`; None for a fact that the GPU does not report.

    Empty if the row has another number of fields.
    """
    if len(row) != len(_FIELDS):
        return {}
    return {name: _fact(text) for name, text in zip(_FIELDS.values(), row, strict=True)}


def gpu_slug(name: str) -> str:
    """The device slug of a GPU called `name`: `nvidia-h200` for `NVIDIA H200`, and for `H200`."""
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


def query_gpus(fields: Sequence[str], index: int | None = None) -> list[list[str]]:
    """Ask `nvidia-smi` for `fields`: one row per GPU, or the row of GPU number `index`.

    Values have no units. Empty if the tool is missing or fails.
    """
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    if index is not None:
        command.append(f"--id={index}")
    try:
        listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [[field.strip() for field in row] for row in csv.reader(listing.strip().splitlines())]


class ClockReader:
    """Reads the clock of one GPU in microseconds through the driver's management library.

    It changes no setting. Tests replace `library`.
    """

    def __init__(self, index: int = 0, library: Any = None) -> None:
        self._handle = ctypes.c_void_p()
        self._library = _loaded() if library is None else library
        if self._library is not None and (
            self._library.nvmlInit_v2()
            or self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(self._handle))
        ):
            self._library = None

    def mhz(self) -> float | None:
        """The clock now, in MHz; None if the driver does not report it."""
        if self._library is None:
            return None
        clock = ctypes.c_uint()
        if self._library.nvmlDeviceGetClockInfo(self._handle, ctypes.c_int(_SM_CLOCK), ctypes.byref(clock)):
            return None
        return float(clock.value)


def _loaded() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None


def at_usual_clock(clocks_mhz: Sequence[float]) -> tuple[bool, ...]:
    """Mark the samples that ran within 1.5 % of the median clock; all of them if more than a fifth did not."""
    if not clocks_mhz:
        return ()
    usual = median(clocks_mhz)
    kept = tuple(abs(mhz - usual) <= _TOLERANCE * usual for mhz in clocks_mhz)
    if kept.count(False) > MOST_DISCARDED * len(kept):
        return (True,) * len(kept)
    return kept
