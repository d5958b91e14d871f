"""Processes of placers forked from one that has loaded the compiled search: each start saves seconds.

Tests about the start itself use real commands: those of `test_placer_process`, all that change the environment of a
placer, and all that a test starts as a process of its own.
"""

import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from tests.forking import ForkServer

from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE
from opmark.leaderboards.scoring import placer_process

_SERVER = ForkServer("""
from opmark.leaderboards.problem.problem import smallest_problem
from opmark.leaderboards.scoring.attempt import prepare
from opmark.leaderboards.scoring.placer_worker import compile_simulator, main

compile_simulator(smallest_problem())
prepare("opmark")
""")


def _started(usual: Mapping[str, str], command: Sequence[str], *, env: Mapping[str, str], **streams: Any) -> Any:
    if dict(env) == usual:
        return _SERVER.fork(env)
    return subprocess.Popen(command, env=env, **streams)


def address() -> str:
    """The socket of the process that forks."""
    return _SERVER.address()


def fork_placers(server: str = "") -> None:
    """From now on, placers that this process runs in the environment of now are forked; `server` is another one's."""
    _SERVER.use(server)
    usual = {**placer_process.worker_environment(), UNCOMPILED_VARIABLE: "0"}
    forking = SimpleNamespace(Popen=partial(_started, usual), PIPE=subprocess.PIPE)
    placer_process.subprocess = forking  # type: ignore[attr-defined]
