"""Compile the search: once per folder of compiled code, whoever needs it first, and in the background where asked.

    python -m opmark.leaderboards.search.compilation

compiles everything that OpMark's placers need, or waits until another process has done so.
"""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

from opmark.core.file_lock import locked
from opmark.core.files import write_text
from opmark.leaderboards.problem.compile_cache import UNCOMPILED_VARIABLE, VARIABLE, runs_uncompiled
from opmark.leaderboards.search.placer import PLACERS

# A folder that nobody has used for so long belongs to a version that is gone.
KEPT_S = 60 * 24 * 3600.0
_READY, _LOCK = "ready", "lock"
# Modules with functions that are compiled when they are imported.
_MODULES = ("opmark.leaderboards.simulator.engine", "opmark.leaderboards.simulator.loads")
# Python warns when it forgets a process that still runs.
_started: list["subprocess.Popen[bytes]"] = []


def is_compiled() -> bool:
    """True if the search of this version was compiled on this machine."""
    return (_folder() / _READY).is_file()


def compile_once() -> None:
    """Compile the search unless that is done; of several processes one compiles, and the others wait for it."""
    if runs_uncompiled() or is_compiled():
        return
    folder = _folder()
    with locked(folder / _LOCK):
        if not is_compiled():
            begun = time.process_time()
            for module in _MODULES:
                importlib.import_module(module)
            PLACERS.load("opmark").prepare()
            write_text(folder / _READY, f"{time.process_time() - begun:.1f} s of processor time\n")
            _forget_old(folder)


def compile_in_background() -> None:
    """Start a process that compiles the search; it goes on when this one ends."""
    environment = {name: value for name, value in os.environ.items() if name != UNCOMPILED_VARIABLE}
    command = [sys.executable, "-m", "opmark.leaderboards.search.compilation"]
    _started.append(
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    )


def _folder() -> Path:
    return Path(os.environ[VARIABLE])


def _forget_old(folder: Path) -> None:
    """Remove the compiled code of versions that were last compiled long ago."""
    import shutil

    for ready in folder.parent.glob(f"*/{_READY}"):
        if ready.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(ready.parent, ignore_errors=True)


if __name__ == "__main__":
    compile_once()
