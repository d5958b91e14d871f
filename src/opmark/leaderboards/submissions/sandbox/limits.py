"""The resource limits of one run, and a command that is ready to start under them."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from opmark.core.errors import UnavailableError

# Unused address space counts too, so that a program cannot hide memory in shared mappings.
MEMORY_BYTES = 4 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hard limits of one process; a submission cannot start other processes.

    `cpu_s` is processor time over all threads, `processes` the threads. Its private `/tmp` holds `temporary_bytes` in
    `temporary_files`, of which each has at most `file_bytes`. `output_bytes` is everything that it prints.
    """

    memory_bytes: int = MEMORY_BYTES
    cpu_s: int = 120
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 64 * 2**20
    temporary_bytes: int = 256 * 2**20
    temporary_files: int = 16_384
    output_bytes: int = 256 * 2**20

    def prefix(self, *, threads: bool = True) -> tuple[str, ...]:
        """The words that put these limits on the command after them.

        Without `threads` their number stays as it is: it is counted over all processes of an account, also outside.
        """
        return (
            tool("prlimit"),
            f"--as={self.memory_bytes}",
            f"--cpu={self.cpu_s}",
            *([f"--nproc={self.processes}"] if threads else []),
            f"--nofile={self.open_files}",
            f"--fsize={self.file_bytes}",
            "--core=0",
            "--",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """A command that is ready to start: it inherits `descriptors` and runs in `folder` with `environment` only."""

    command: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...] = ()
    folder: Path | None = None


def pinned(processor: int | None) -> tuple[str, ...]:
    """The words that keep the command after them on one processor, where one is given."""
    return () if processor is None else (tool("taskset"), "--cpu-list", str(processor))


def tool(name: str) -> str:
    """The path of a program of util-linux. Raises `UnavailableError`."""
    found = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if found is None:
        raise UnavailableError(
            f"running a submission needs {name}, which is not here",
            hint="install your distribution's util-linux package",
        )
    return found
