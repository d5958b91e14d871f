"""What one run of a submission may use."""

import shutil
from dataclasses import dataclass

from opmark.core.errors import UnavailableError

# Address space that nothing uses still counts, so that a program cannot hide memory in shared mappings.
MEMORY_BYTES = 4 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Hard limits of one process; a single process, since a submission cannot start others.

    `cpu_s` is processor time over all threads, `processes` the threads, `temporary_bytes` the size of its private
    `/tmp`, `file_bytes` one file there, `output_bytes` everything it prints.
    """

    memory_bytes: int = MEMORY_BYTES
    cpu_s: int = 120
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 64 * 2**20
    temporary_bytes: int = 256 * 2**20
    output_bytes: int = 256 * 2**20

    def prefix(self) -> tuple[str, ...]:
        """The words before a command that put these limits on it."""
        return (
            tool("prlimit"),
            f"--as={self.memory_bytes}",
            f"--cpu={self.cpu_s}",
            f"--nproc={self.processes}",
            f"--nofile={self.open_files}",
            f"--fsize={self.file_bytes}",
            "--core=0",
            "--",
        )


def pinned(processor: int | None) -> tuple[str, ...]:
    """The words before a command that keep it on one processor, where one is given: one thread's worth of work."""
    return () if processor is None else (tool("taskset"), "--cpu-list", str(processor))


def tool(name: str) -> str:
    """Where a program of util-linux is. Raises `UnavailableError`."""
    found = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if found is None:
        raise UnavailableError(
            f"running a submission needs {name}, which is not here",
            hint="install your distribution's util-linux package",
        )
    return found
