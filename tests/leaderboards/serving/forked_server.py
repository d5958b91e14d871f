"""Servers forked from a process that has imported everything, with scoring processes forked from the server.

Each start saves seconds of processor time: of the server, of every process that scores or writes the site, and of the
placers in them. Tests about starting and ending use real commands: `test_sigterm_ends_the_server_soundly`, and those of
`test_scoring_loop`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from tests.forking import ForkedProcess, ForkServer
from tests.leaderboards import forked_placers

ROOT = Path(__file__).resolve().parents[3]
JOB = "OPMARK_TEST_SERVER"
_SERVER = ForkServer(f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.leaderboards.serving.forked_server import load, main
load()
""")


def start_server(arguments: Sequence[str], folder: Path) -> ForkedProcess:
    """A process of the command line `opmark` with `arguments`, in `folder`."""
    job = {"arguments": list(arguments), "folder": str(folder), "placers": forked_placers.address()}
    return _SERVER.fork({**os.environ, JOB: json.dumps(job)})


def load() -> None:
    """Import and compile what the server and its processes need."""
    import uvicorn.lifespan.on
    import uvicorn.protocols.http.h11_impl  # noqa: F401

    import opmark.cli.commands.leaderboards
    import opmark.leaderboards.serving.application
    import opmark.leaderboards.serving.scoring_process
    import opmark.leaderboards.serving.server
    import opmark.leaderboards.site.publishing  # noqa: F401
    from opmark.leaderboards.problem.problem import smallest_problem
    from opmark.leaderboards.scoring.placer_worker import compile_simulator

    compile_simulator(smallest_problem())


def main() -> None:
    """Run the command line of the job in the environment; its scoring processes are forked from here."""
    from opmark.cli.main import cli
    from opmark.leaderboards.serving import scoring_loop

    job: dict[str, Any] = json.loads(os.environ.pop(JOB))
    os.chdir(job["folder"])
    forked_placers.fork_placers(job["placers"])
    forking = SimpleNamespace(Popen=_ForkedScorer, PIPE=subprocess.PIPE)
    scoring_loop.subprocess = forking  # type: ignore[attr-defined]
    try:
        cli(job["arguments"])
    except SystemExit as ended:
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)


class _ForkedScorer:
    """What the scoring loop uses of `subprocess.Popen`: a child of the server, which ends with it."""

    def __init__(self, command: Sequence[str], **streams: Any) -> None:
        del command, streams
        ends = os.pipe(), os.pipe()
        (theirs_in, mine_in), (mine_out, theirs_out) = ends
        self.pid = os.fork()
        if self.pid == 0:
            _score(theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin: IO[bytes] = os.fdopen(mine_in, "wb")
        self.stdout: IO[bytes] = os.fdopen(mine_out, "rb")

    def wait(self) -> int:
        """The exit code, once the process has ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _score(theirs_in: int, theirs_out: int) -> None:
    """The scoring process, with nothing open but its streams."""
    from opmark.leaderboards.serving import scoring_process

    code = 1
    try:
        os.setsid()
        os.dup2(theirs_in, 0)
        os.dup2(theirs_out, 1)
        os.closerange(3, 256)
        code = scoring_process.main()
    finally:
        os._exit(code)
