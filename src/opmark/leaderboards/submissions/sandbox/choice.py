"""Choose a sandbox: bubblewrap, or none for code that the user declares to trust."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from opmark.core.errors import UsageError
from opmark.leaderboards.submissions.sandbox.bubblewrap import Bubblewrap, require_bubblewrap
from opmark.leaderboards.submissions.sandbox.limits import Confined, Limits, pinned
from opmark.leaderboards.submissions.sandbox.runtime import (
    COMPILED,
    FOLDER,
    INTERPRETER,
    PRIVATE,
    SCRATCH,
    compiled_code,
    host_variables,
)
from opmark.leaderboards.submissions.sandbox.syscalls import seccomp_filter


class Unprotected:
    """No sandbox: a program runs with the user's own rights, under limits on its resources only."""

    name = "none"

    def hiding(self, *_folders: Path) -> "Unprotected":
        """Nothing can be hidden."""
        return self

    def program(self, path: Path) -> str | None:
        """The path of a program, None where there is no such file."""
        return str(path) if path.is_file() else None

    def layers(self, limits: Limits) -> tuple[str, ...]:
        """The protections of a run, for its record."""
        return (
            "no sandbox: the run was trusted",
            f"limits: {limits.memory_bytes >> 20} MiB memory, {limits.output_bytes >> 20} MiB output, processor time",
            "wall clock",
        )

    @contextlib.contextmanager
    def confined(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        limits: Limits,
        environment: dict[str, str],
        processor: int | None = None,
    ) -> Iterator[Confined]:
        """Prepare `command` to run in `folder` with a temporary folder of its own."""
        with tempfile.TemporaryDirectory(prefix="opmark-run-") as scratch, tempfile.TemporaryDirectory() as compiled:
            for name, path in compiled_code().items():
                Path(compiled, name).symlink_to(path)
            here = {FOLDER: str(folder.resolve())}
            words = [sys.executable if word == INTERPRETER else _moved(word, here) for word in command]
            private = {SCRATCH: scratch, COMPILED: compiled}
            moved = {name: _moved(value, private) if name in PRIVATE else value for name, value in environment.items()}
            kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
            start = (*pinned(processor), *limits.prefix(), *words)
            yield Confined(command=start, environment={**kept, **moved, **host_variables()}, folder=folder)


def _moved(word: str, inside: dict[str, str]) -> str:
    """Replace a path of the sandbox by the path that stands for it outside."""
    for path, real in inside.items():
        if word == path or word.startswith(f"{path}/"):
            return real + word[len(path) :]
    return word


Sandbox = Bubblewrap | Unprotected


def sandbox(name: str = "bubblewrap", *, trusted: bool = False, private: Sequence[Path] = ()) -> Sandbox:
    """The sandbox called `name`, which shows nothing of the folders in `private`.

    Raises `UnavailableError`, or `UsageError` for `none` unless `trusted`.
    """
    if name == "none":
        if not trusted:
            raise UsageError(
                "without a sandbox a submission can read and change everything that you can",
                hint="if you wrote it yourself, add --i-trust-this",
            )
        return Unprotected()
    require_bubblewrap()
    seccomp_filter()  # without it nothing would run, and that shows before anything takes long
    return Bubblewrap(tuple(private))
