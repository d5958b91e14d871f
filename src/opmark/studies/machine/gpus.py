"""Which GPUs this machine has, asked of the driver's own tool, so that no framework needs to be installed."""

import csv
import shutil
import subprocess
from dataclasses import dataclass

_FIELDS = ("name", "memory.total", "driver_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A card as its driver names it."""

    name: str
    memory_bytes: int
    driver: str


def gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs that `nvidia-smi` lists; none where it is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command = (tool, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_gpus(finished.stdout)


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """The cards in `nvidia-smi`'s CSV (memory in MiB); lines of another form are left out."""
    rows = [[field.strip() for field in row] for row in csv.reader(listing.splitlines())]
    return tuple(
        Gpu(name=row[0], memory_bytes=int(row[1]) << 20, driver=row[2])
        for row in rows
        if len(row) == len(_FIELDS) and row[1].isdigit()
    )
