"""Scoring processes forked from one that has imported everything; their placers are forked as those of all tests.

Each start saves seconds of processor time. Tests about the start and the end of a scoring process use real commands.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.forking import ForkedProcess, ForkServer
from tests.leaderboards import forked_placers

from opmark.leaderboards.serving import scoring_loop

ROOT = Path(__file__).resolve().parents[3]
PLACERS = "OPMARK_TEST_PLACERS"
_SERVER = ForkServer(f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.leaderboards.serving.forked_scorer import load, main
load()
""")


def fork_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scoring loops of this process fork their scoring processes."""
    forking = SimpleNamespace(Popen=_started, PIPE=subprocess.PIPE)
    monkeypatch.setattr(scoring_loop, "subprocess", forking)


def load() -> None:
    """Import and compile what scoring needs."""
    import opmark.leaderboards.site.publishing  # noqa: F401
    from opmark.leaderboards.problem.problem import smallest_problem
    from opmark.leaderboards.scoring.placer_worker import compile_simulator

    compile_simulator(smallest_problem())


def main() -> None:
    """Do one job of a scoring loop."""
    from opmark.leaderboards.serving import scoring_process

    forked_placers.fork_placers(os.environ.pop(PLACERS))
    assert scoring_process.main() == 0


def _started(command: Sequence[str], **streams: Any) -> ForkedProcess:
    del command, streams
    return _SERVER.fork({**os.environ, PLACERS: forked_placers.address()})
