"""Measuring processes forked from one that has imported everything: each start saves 0.4 s of processor time.

Tests about the start itself use real commands: those of `test_pool`, of faulty backends, and all that a test starts as
a process of its own.
"""

import subprocess
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import IO, Any

from tests.forking import ForkServer

from opmark.bench.worker import pool

_SERVER = ForkServer("""
from opmark.bench.worker.server import main
import opmark.bench.backends.null, opmark.models.resolve
from opmark.kinds import KINDS

for name in KINDS.names():
    KINDS.load(name)
""")


def address() -> str:
    """The socket of the process that forks."""
    return _SERVER.address()


def _started(command: Sequence[str], *, stderr: IO[bytes], env: Mapping[str, str], **streams: Any) -> Any:
    if tuple(command) == pool.COMMAND:
        return _SERVER.fork(env, stderr.fileno())
    return subprocess.Popen(command, stderr=stderr, env=env, **streams)


_FORKING = SimpleNamespace(Popen=_started, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


def fork_workers(server: str = "") -> None:
    """From now on, runs of this process measure in forked workers, of another process's `server` if one is named."""
    _SERVER.use(server)
    pool.subprocess = _FORKING  # type: ignore[attr-defined]


def start_workers() -> None:
    """From now on, runs of this process start a command for each worker, as everywhere outside of tests."""
    pool.subprocess = subprocess  # type: ignore[attr-defined]
